//go:build tools

// Package deploy pins the tools that look at what deploy/ has.
package deploy

import (
	_ "github.com/yannh/kubeconform/cmd/kubeconform"
	_ "helm.sh/helm/v3/cmd/helm"
)
