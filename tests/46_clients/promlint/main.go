// promlint reads the metrics page of a server as Prometheus reads it, and prints what Prometheus' own linter says of each family:
// "FAMILY<tab>PROBLEM", a line each, with the number of families before them.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func page(url string) ([]byte, error) {
	answer, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

func lint(url string) error {
	text, err := page(url)
	if err != nil {
		return err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return err
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		return err
	}
	fmt.Println(len(families))
	for _, p := range problems {
		fmt.Printf("%s\t%s\n", p.Metric, p.Text)
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client http://HOST:PORT/metrics")
		os.Exit(2)
	}
	if err := lint(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
