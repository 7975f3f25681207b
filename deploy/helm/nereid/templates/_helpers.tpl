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

{{- define "nereid.scheme" -}}
{{- if . }}https{{ else }}http{{ end }}
{{- end }}

{{- define "nereid.volume" -}}
{{- if .Values.models.volume }}{{ toYaml .Values.models.volume }}
{{- else if and (kindIs "map" .Values.models.volume) (hasPrefix "/" .Values.models.repository) }}emptyDir: {}
{{- end }}
{{- end }}

{{- define "nereid.options" -}}
{{- $elsewhere := dict "http-port" "ports.http" "grpc-port" "ports.grpc" "metrics-port" "ports.metrics" "exit-timeout-secs" "stopSeconds" }}
{{- range $name, $value := .Values.options }}
{{- with get $elsewhere $name }}{{ fail (printf "options.%s: set %s instead, by which the rest of the chart goes too" $name .) }}{{ end }}
- {{ printf "--%s=%s" $name (kindIs "string" $value | ternary $value (toJson $value)) | quote }}
{{- end }}
{{- end }}

{{- define "nereid.account" -}}
{{ .Values.serviceAccount.name | default (include "nereid.name" .) }}
{{- end }}
