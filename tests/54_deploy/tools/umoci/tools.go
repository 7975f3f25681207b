//go:build tools

// Package tools names the program that tests/54_deploy reads images with, so that go.mod pins it.
package tools

import _ "github.com/opencontainers/umoci/cmd/umoci"
