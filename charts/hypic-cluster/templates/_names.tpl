{{- define "hypic-cluster.name" -}}
{{- $name := default .Release.Name .Values.name -}}
{{- /* The operator shortens longer names with a hash, and then the Service's name cannot be foreseen. */ -}}
{{- if or (gt (len $name) 35) (not (regexMatch "^[a-z][-a-z0-9]*$" $name)) -}}
{{- fail (printf "%q cannot name the cluster's Service: give a `name` of at most 35 small letters, digits and dashes that starts with a letter" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "hypic-cluster.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/part-of: hypic
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
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
{{- $spec := deepCopy (omit .Values "name" "labels" "annotations" "test" "global") -}}
{{- include "hypic-cluster.prune" $spec -}}
{{- toYaml $spec -}}
{{- end -}}
