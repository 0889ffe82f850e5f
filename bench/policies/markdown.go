package main

func (r *report) markdown() string { return "" }
