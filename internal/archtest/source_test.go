package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Sizes beyond which a reader loses the thread, in lines.
const (
	maxFile         = 450
	maxTestFile     = 600
	maxFunction     = 75
	maxTestFunction = 150 // a table of cases is long and still easy
)

func TestSource(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		relative, err := filepath.Rel(root, path)
		for _, problem := range sourceProblems(filepath.ToSlash(relative), source) {
			t.Error(problem)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("read %d Go files only", files)
	}
}

// sourceFile is a parsed file on its way through the rules.
type sourceFile struct {
	path     string // below the module
	set      *token.FileSet
	syntax   *ast.File
	problems []string
}

// sourceProblems returns what is wrong with a file, with its line. Generated
// files are not judged.
func sourceProblems(path string, source []byte) []string {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	if ast.IsGenerated(syntax) {
		return nil
	}
	f := &sourceFile{path: path, set: set, syntax: syntax}
	f.sizes(bytes.Count(source, []byte("\n")))
	f.comments()
	var enclosing []ast.Node
	ast.Inspect(syntax, func(n ast.Node) bool {
		if n == nil {
			enclosing = enclosing[:len(enclosing)-1]
			return true
		}
		if s, ok := n.(*ast.SelectorExpr); ok {
			f.selector(s, enclosing)
		}
		enclosing = append(enclosing, n)
		return true
	})
	return f.problems
}

func (f *sourceFile) report(pos token.Pos, format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf("%s:%d: ", f.path, f.set.Position(pos).Line)+fmt.Sprintf(format, args...))
}

func (f *sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isProgram tells whether the file may talk to a terminal and read the
// environment: programs, and what exists to start them.
func (f *sourceFile) isProgram() bool {
	return f.syntax.Name.Name == "main" || strings.HasPrefix(f.path, "examples/")
}

func (f *sourceFile) sizes(lines int) {
	fileLimit, functionLimit := maxFile, maxFunction
	if f.isTest() {
		fileLimit, functionLimit = maxTestFile, maxTestFunction
	}
	if lines > fileLimit {
		f.report(f.syntax.Package, "%d lines, want at most %d: one subject a file", lines, fileLimit)
	}
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1; n > functionLimit {
			f.report(fn.Pos(), "%s has %d lines, want at most %d", fn.Name.Name, n, functionLimit)
		}
		if fn.Name.Name == "init" && fn.Recv == nil {
			f.report(fn.Pos(), "init runs unasked, in every test and program: call a function")
		}
	}
}

// marker is a note to oneself.
var marker = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "X" + "XX"}, "|") + `)\b`)

func (f *sourceFile) comments() {
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if word := marker.FindString(c.Text); word != "" {
				f.report(c.Pos(), "%s: do it, or open an issue", word)
			}
		}
	}
}

// selector applies the rules about names of other packages; enclosing are the
// nodes around it, the outermost first.
func (f *sourceFile) selector(s *ast.SelectorExpr, enclosing []ast.Node) {
	f.wallClock(s)
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return
	}
	name := x.Name + "." + s.Sel.Name
	if f.isTest() {
		f.selectorInTest(name, s, enclosing)
		return
	}
	c, _ := componentOf(filepath.Dir(f.path))
	switch {
	case name == "time.After" || name == "time.Tick":
		f.report(s.Pos(), "%s cannot be stopped: use a timer or a context", name)
	case c.layer == pure && slices.Contains(clock, name):
		f.report(s.Pos(), "%s in a pure package: the clock comes in as a value", name)
	case strings.HasPrefix(name, "fmt.Print") && !f.isProgram():
		f.report(s.Pos(), "%s outside a program: return a value or write to an io.Writer", name)
	case slices.Contains(environment, name) && !f.isProgram() && c.layer != support:
		f.report(s.Pos(), "%s outside a program: settings come in as values", name)
	}
}

// wallClock forbids the program to compute with the time of day, which jumps when
// a clock is set. What time.Now returns has a monotonic reading, which the
// differences between two of them use.
func (f *sourceFile) wallClock(s *ast.SelectorExpr) {
	c, _ := componentOf(filepath.Dir(f.path))
	if f.isTest() || c.layer == support || !slices.Contains(timeOfDay, s.Sel.Name) || slices.Contains(knowsTheDay, c.path) {
		return
	}
	f.report(s.Pos(), "%s: the time of day jumps when a clock is set; compute with what time.Now returns", s.Sel.Name)
}

var (
	timeOfDay = []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano"}
	// knowsTheDay write or read times of day: in recordings, traces and certificates.
	knowsTheDay = []string{"internal/recording", "internal/trace", "internal/certificate"}

	clock       = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.NewTimer", "time.NewTicker", "time.AfterFunc"}
	environment = []string{"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv"}
)

func (f *sourceFile) selectorInTest(name string, s *ast.SelectorExpr, enclosing []ast.Node) {
	switch {
	case name == "time.Sleep" && !calledWithin(enclosing, "synctest.Test"):
		f.report(s.Pos(), "a real sleep makes a test slow or flaky: use a synctest bubble or poll for what is awaited")
	case name == "context.Background" && !calledWithin(enclosing, "context.WithTimeout", "context.WithCancel", "context.WithDeadline"):
		f.report(s.Pos(), "a test that hangs must end: use t.Context()")
	case strings.HasPrefix(s.Sel.Name, "Skip") && isTestingParameter(strings.TrimSuffix(name, "."+s.Sel.Name), enclosing):
		f.report(s.Pos(), "a test that is skipped proves nothing: make it run or fail")
	}
}

// calledWithin tells whether a call of one of the functions is around.
func calledWithin(enclosing []ast.Node, functions ...string) bool {
	return slices.ContainsFunc(enclosing, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && slices.Contains(functions, x.Name+"."+s.Sel.Name)
	})
}

// isTestingParameter tells whether the name is a parameter of a type of package
// testing in the innermost function that has such a name. (Rapid's own Skip only
// drops a step that does not apply.)
func isTestingParameter(name string, enclosing []ast.Node) bool {
	for _, n := range slices.Backward(enclosing) {
		var parameters *ast.FieldList
		switch n := n.(type) {
		case *ast.FuncDecl:
			parameters = n.Type.Params
		case *ast.FuncLit:
			parameters = n.Type.Params
		default:
			continue
		}
		for _, p := range parameters.List {
			if slices.ContainsFunc(p.Names, func(i *ast.Ident) bool { return i.Name == name }) {
				return strings.HasPrefix(typeName(p.Type), "testing.")
			}
		}
	}
	return false
}

func typeName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// Each fault is found, and what is allowed is not taken for one.
func TestSourceFindsFaults(t *testing.T) {
	for _, c := range []struct {
		path, source string
		want         string // part of the problem; empty if there is none
	}{
		{"xds/x.go", `func f() { <-time.After(1) }`, "xds/x.go:2: time.After"},
		{"xds/x_test.go", `func f() { <-time.After(1) }`, ""},
		{"extproc/x.go", `func f() { time.Now().UnixNano() }`, "the time of day"},
		{"extproc/x.go", `var t = r.at.Unix()`, "the time of day"},
		{"internal/recording/x.go", `var t = r.at.UnixMilli()`, ""},
		{"bench/replica/x.go", `var t = r.at.UnixMilli()`, ""},
		{"internal/route/x.go", `func f() { time.Now() }`, "the clock"},
		{"internal/route/x_test.go", `func f() { time.Now() }`, ""},
		{"bench/replica/engine/x.go", `var t = time.Since`, "the clock"},
		{"extproc/x.go", `func f() { time.Now() }`, ""},
		{"extproc/x.go", `func f() { fmt.Println() }`, "outside a program"},
		{"examples/story/x.go", `func f() { fmt.Println() }`, ""},
		{"extproc/x.go", `func f() { os.Getenv("HOME") }`, "settings come in"},
		{"internal/stack/x.go", `func f() { os.Environ() }`, ""},
		{"extproc/x.go", `func init() {}`, "init runs unasked"},
		{"extproc/x.go", `func (x) init() {}`, ""},
		{"extproc/x.go", "// TO" + "DO: more", "open an issue"},
		{"extproc/x.go", "// todo lists", ""},
		{"extproc/x_test.go", `func f() { time.Sleep(1) }`, "a real sleep"},
		{"extproc/x_test.go", `func f(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`, ""},
		{"extproc/x_test.go", `var c = context.Background()`, "t.Context()"},
		{"extproc/x_test.go", `func f() { context.WithTimeout(context.Background(), 1) }`, ""},
		{"extproc/x_test.go", `func f(t *testing.T) { t.Skip("later") }`, "proves nothing"},
		{"extproc/x_test.go", `func f(tb testing.TB) { tb.SkipNow() }`, "proves nothing"},
		{"extproc/x_test.go", `func f(t *testing.T) { func(t *rapid.T) { t.Skip() }(nil) }`, ""},
		{"extproc/x.go", "func f() {" + strings.Repeat("\n", maxFunction) + "}", "want at most 75"},
		{"extproc/x.go", "func f() {" + strings.Repeat("\n", maxFunction-1) + "}", ""},
		{"extproc/x_test.go", "func f() {" + strings.Repeat("\n", maxFunction) + "}", ""},
		{"extproc/x_test.go", "func f() {" + strings.Repeat("\n", maxTestFunction) + "}", "want at most 150"},
		{"extproc/x.go", strings.Repeat("\n", maxFile), "one subject a file"},
		{"extproc/x_test.go", strings.Repeat("\n", maxFile), ""},
		{"extproc/x_test.go", strings.Repeat("\n", maxTestFile), "one subject a file"},
		{"extproc/x.go", "// Code generated by x. DO NOT EDIT.\n\nfunc init() {}", ""},
		{"extproc/x.go", "func {", "expected"},
	} {
		text := "package x\n" + c.source + "\n"
		if strings.HasPrefix(c.source, "// Code generated") {
			text = strings.Replace(c.source, "\n\n", "\n\npackage x\n", 1) + "\n"
		}
		got := strings.Join(sourceProblems(c.path, []byte(text)), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %.60q: got %q, want %q", c.path, c.source, got, c.want)
		}
	}
}
