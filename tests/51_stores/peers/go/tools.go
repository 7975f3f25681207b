//go:build tools

// Package peers pins the stores that the tests talk to.
package peers

import (
	_ "github.com/fsouza/fake-gcs-server"
	_ "github.com/versity/versitygw/cmd/versitygw"
)
