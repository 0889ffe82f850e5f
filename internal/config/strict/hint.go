package strict

import "strings"

// hint ends the message about an unknown key: the field that was probably
// meant, or the ones there are.
func hint(name string, fields []Field) string {
	best, distance := "", 3
	for _, f := range fields {
		if d := editDistance(strings.ToLower(name), strings.ToLower(f.Name)); d < distance && d < len(f.Name) {
			best, distance = f.Name, d
		}
	}
	if best != "" {
		return ", did you mean " + best + "?"
	}
	return " (want " + list(fields) + ")"
}

func list(fields []Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// editDistance is Levenshtein's, in bytes: field names are ASCII.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
