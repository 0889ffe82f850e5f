package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/warmpath/warmpath/bench/record"
)

// report is the outcome. Apart from Machine and Minutes the same seed gives the same
// bytes.
type report struct {
	Machine record.Machine `json:"machine"`
	// Minutes is how long it took.
	Minutes   float64           `json:"minutes"`
	Seed      uint64            `json:"seed"`
	Criteria  []criterion       `json:"criteria"`
	Ratios    []ratio           `json:"p90_ratios"`
	Traces    []compared        `json:"traces"`
	Frontiers []frontier        `json:"frontiers,omitempty"`
	SageMaker []sagemakerReport `json:"sagemaker"`
	Hot       []hotReport       `json:"hot_prefix"`
	HotTable  *compared         `json:"hot_prefix_workload,omitempty"`
	Routers   []routersReport   `json:"routers"`
	Scaling   []scalingReport   `json:"scaling"`
	Robust    []comparison      `json:"robust"`
	Mixed     []mixedReport     `json:"replicas_of_two_speeds"`
}

// parts are what a report is made of, by name.
func parts() []string {
	return []string{"table", "frontier", "sagemaker", "hot", "routers", "scaling", "robust", "outstanding", "mixed"}
}

// make runs the parts that are asked for.
func (s *simulator) make(o options) (*report, error) {
	r := &report{Seed: o.seed}
	var workloads []*workload
	for _, t := range o.scope.traces {
		list, err := t.load(o.data)
		if err != nil {
			return nil, err
		}
		workloads = append(workloads, list...)
	}
	for _, part := range o.parts {
		fmt.Fprintf(s.progress, "%v: %s\n", time.Since(s.begin).Round(time.Second), part)
		if err := s.part(r, part, workloads, o); err != nil {
			return nil, err
		}
	}
	r.Ratios = ratios(r.workloads())
	r.Criteria = r.criteria()
	return r, nil
}

func (s *simulator) part(r *report, part string, workloads []*workload, o options) (err error) {
	switch part {
	case "table":
		r.Traces, err = s.traceTable(workloads, o.scope.policies, o.seed)
	case "frontier":
		r.Frontiers, err = s.frontiers(workloads, o.seed)
	case "sagemaker":
		r.SageMaker, err = s.bothSageMaker(o)
	case "hot":
		var table compared
		r.Hot, table, err = s.hotPrefix(o.scope.hot, o.scope.policies, o.seed)
		r.HotTable = &table
	case "routers":
		r.Routers, err = s.routers(workloads, routerPolicies(o.scope.policies), o.seed)
	case "scaling":
		scaled := o.scope.scaled.short()
		scaled.Name, scaled.Speed = "conversations", o.scope.scaledRate
		r.Scaling, err = s.scaling(append([]*workload{scaled}, workloads...), o.scope.events, o.scope.changedSeeds, o.seed)
	case "robust":
		r.Robust, err = s.robust(workloads, o.scope.variants, o.scope.rivals, o.scope.seeds, o.seed)
	case "outstanding":
		var list []comparison
		list, err = s.outstanding(workloads, o.scope.outstanding, o.scope.large, o.scope.rivals, o.scope.seeds, o.seed)
		r.Robust = append(r.Robust, list...)
	case "mixed":
		r.Mixed, err = s.mixed(workloads, o.seed)
	}
	return err
}

func (s *simulator) bothSageMaker(o options) ([]sagemakerReport, error) {
	long, err := s.sagemaker(o.scope.sizes.long(), o.scope.longRates, longInFlight, o.scope.policies, o.seed, o.scope.rounds)
	if err != nil {
		return nil, err
	}
	short, err := s.sagemaker(o.scope.sizes.short(), o.scope.shortRates, shortInFlight, o.scope.policies, o.seed, o.scope.rounds)
	return []sagemakerReport{long, short}, err
}

// routerPolicies are auto, hashing, and those that keep a record of their own.
func routerPolicies(of []string) (list []string) {
	for _, p := range []string{"least_outstanding", "hash:4096", "sglang", "sticky", "lmetric", "kv_aware", auto} {
		if slices.Contains(of, p) {
			list = append(list, p)
		}
	}
	return list
}

// workloads are all on which all policies ran.
func (r *report) workloads() []compared {
	all := slices.Clone(r.Traces)
	for _, s := range r.SageMaker {
		all = append(all, s.compared)
	}
	if r.HotTable != nil {
		all = append(all, *r.HotTable)
	}
	return all
}

// missed says which criteria are not kept.
func (r *report) missed(w io.Writer) {
	for _, c := range r.Criteria {
		if !c.Kept {
			fmt.Fprintf(w, "missed: %s, %s: %v %s\n", c.What, c.Where, c, c.Note)
		}
	}
}
