{{- define "hypic-cluster.name" -}}
{{- default .Release.Name .Values.name -}}
{{- end -}}

{{- define "hypic-cluster.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: hypic
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Takes nulls out of a map, in place, and maps that are empty without them. */}}
{{- define "hypic-cluster.prune" -}}
{{- $map := . -}}
{{- range $key := keys $map -}}
{{- $value := get $map $key -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $map $key -}}
{{- else if and (kindIs "map" $value) $value -}}
{{- include "hypic-cluster.prune" $value -}}
{{- if not $value -}}
{{- $_ := unset $map $key -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The spec: the values that mirror it, without those that nobody gave. */}}
{{- define "hypic-cluster.spec" -}}
{{- $spec := deepCopy (pick .Values "model" "pic" "prefill" "router" "drain") -}}
{{- include "hypic-cluster.prune" $spec -}}
{{- toYaml $spec -}}
{{- end -}}
