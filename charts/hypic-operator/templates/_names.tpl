{{- define "hypic-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "hypic-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "hypic-operator.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else if hasPrefix (printf "%s-" .Release.Name) $name -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "hypic-operator.selector" -}}
app.kubernetes.io/name: {{ include "hypic-operator.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "hypic-operator.labels" -}}
{{ include "hypic-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/part-of: hypic
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hypic-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "hypic-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "hypic-operator.tag" -}}
{{- default .Chart.AppVersion .Values.image.tag -}}
{{- end -}}

{{- define "hypic-operator.repository" -}}
{{- required "image.repository is required: where you pushed the operator's image (docs/install.md)" .Values.image.repository -}}
{{- end -}}

{{/* The image of a sibling: same repository folder and tag as the operator's own. */}}
{{- define "hypic-operator.siblingImage" -}}
{{- $root := index . 0 -}}
{{- printf "%s/%s:%s" (include "hypic-operator.repository" $root | dir) (index . 1) (include "hypic-operator.tag" $root) -}}
{{- end -}}
