{{- define "nereid.name" -}}
{{- $name := .Release.Name | replace "." "-" }}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "%s-%s" .Chart.Name $name }}{{ end }}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end }}
{{- $name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "nereid.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "nereid.labels" -}}
{{ include "nereid.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "nereid.labels.own" -}}
{{- $own := last . | default dict }}
{{- merge (deepCopy $own) (include "nereid.labels" (first .) | fromYaml) | toYaml }}
{{- end }}

{{- define "nereid.image" -}}
{{ .Values.image.repository }}
{{- if not (contains "@" .Values.image.repository) }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "nereid.scheme" -}}
{{- if . }}https{{ else }}http{{ end }}
{{- end }}

{{- define "nereid.volume" -}}
{{- if .Values.models.volume }}{{ toYaml .Values.models.volume }}
{{- else if and (kindIs "map" .Values.models.volume) (hasPrefix "/" .Values.models.repository) }}emptyDir: {}
{{- end }}
{{- end }}

{{- define "nereid.options" -}}
{{- $elsewhere := dict "model-repository" "models.repository" "model-store" "models.repository" "exit-timeout-secs" "stopSeconds" "config" "options" }}
{{- range $port := list "http" "grpc" "metrics" }}
{{- $_ := set $elsewhere (printf "%s-port" $port) (printf "ports.%s" $port) }}
{{- range list "use-ssl" "use-ssl-mutual" "server-cert" "server-key" "root-cert" }}
{{- $_ := set $elsewhere (printf "%s-%s" $port .) (printf "tls.%s" $port) }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.options }}
{{- /* The server takes names that are cut short. */}}
{{- range $whole, $instead := $elsewhere }}
{{- if hasPrefix $name $whole }}{{ fail (printf "options.%s: set %s instead, by which the rest of the chart goes too" $name $instead) }}{{ end }}
{{- end }}
{{- range list "http" "grpc" "metrics" }}
{{- if and (hasPrefix $name (printf "%s-address" .)) (not (regexMatch "^(0\\.0\\.0\\.0|::|\\$\\(\\w+\\))$" (toString $value))) }}
{{- fail (printf "options.%s: leave it out, or set 0.0.0.0, :: or $(NAME), a variable of env: whoever asks a pod is outside of it" $name) }}
{{- end }}
{{- end }}
{{- if hasPrefix $name "allow-http" }}{{ fail (printf "options.%s: leave it out: the probes of Kubernetes come over HTTP" $name) }}{{ end }}
- {{ printf "--%s=%s" $name (kindIs "string" $value | ternary $value (toJson $value)) | quote }}
{{- end }}
{{- end }}

{{- define "nereid.refuse" -}}
{{- if and .Values.image.tag (contains "@" .Values.image.repository) }}{{ fail "image.tag: leave it out: the digest of image.repository says which image" }}{{ end }}
{{- with .Values.ports }}
{{- if lt (len (uniq (list (int .http) (int .grpc) (int .metrics)))) 3 }}{{ fail "ports: http, grpc and metrics need a port each" }}{{ end }}
{{- end }}
{{- with .Values.models }}
{{- if and .volume (not (hasPrefix "/" .repository)) }}
{{- fail (printf "models.volume: leave it out, since %s is brought from its store; or set models.repository to a directory, where the volume is mounted" .repository) }}
{{- end }}
{{- /* What is mounted hides what the image has there. */}}
{{- $below := include "nereid.volume" $ | empty | ternary "" "(/.*)?" }}
{{- if regexMatch (printf "^/((tls|proc)(/.*)?|tmp|opt|(bin|etc|usr|lib|lib64|sys|dev|opt/nereid)%s)?$" $below) (clean .repository) }}
{{- fail (printf "models.repository: %s is taken by the pod itself: set another directory, such as /models" .repository) }}
{{- end }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (lt (int .maxReplicas) (int .minReplicas)) }}
{{- fail (printf "autoscaling.maxReplicas: %d is fewer than minReplicas, %d: raise it, or lower minReplicas" (int .maxReplicas) (int .minReplicas)) }}
{{- end }}
{{- end }}
{{- $shown := .Values.serviceMonitor.tlsConfig | default dict }}
{{- if and .Values.serviceMonitor.enabled .Values.tls.metrics.clients (not (and (or $shown.cert $shown.certFile) (or $shown.keySecret $shown.keyFile))) }}
{{- fail "serviceMonitor.tlsConfig: give cert and keySecret, beside ca and serverName: tls.metrics.clients serves only those with a certificate, and Prometheus has none" }}
{{- end }}
{{- end }}

{{- define "nereid.account" -}}
{{ .Values.serviceAccount.name | default (include "nereid.name" .) }}
{{- end }}
