{{/* Name of the ConfigMap, of the Service, and of everything else that belongs to one configuration. */}}
{{- define "hookonce-lib.fullname" -}}
{{- $values := .values | default dict }}
{{- $name := $values.nameOverride | default "hookonce" }}
{{- if $values.fullnameOverride }}
{{- $values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .ctx.Release.Name }}
{{- .ctx.Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .ctx.Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "hookonce-lib.labels" -}}
{{- $values := include "hookonce-lib.values" . | fromYaml }}
{{- $labels := dict
  "app.kubernetes.io/name" ($values.nameOverride | default "hookonce")
  "app.kubernetes.io/instance" .ctx.Release.Name
  "app.kubernetes.io/managed-by" .ctx.Release.Service
  "app.kubernetes.io/part-of" "hookonce"
  "app.kubernetes.io/version" (include "hookonce-lib.version" .)
  "helm.sh/chart" (printf "%s-%s" .ctx.Chart.Name .ctx.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
{{- merge $labels $values.commonLabels | toYaml }}
{{- end }}

{{/*
Says of a pod which configuration its gateway has. The Service, the PodMonitor and the bundled Redis find pods by it,
and charts/hookonce-injector acts on it.
*/}}
{{- define "hookonce-lib.podLabels" -}}
hookonce.io/config: {{ include "hookonce-lib.fullname" . }}
{{- end }}

{{/*
Settings that only a restart brings start the pods anew when they change. The others are taken up by the gateways that
are running, about a minute after the ConfigMap has changed.
*/}}
{{- define "hookonce-lib.podAnnotations" -}}
{{- $config := (include "hookonce-lib.values" . | fromYaml).config }}
{{- range include "hookonce-lib.live" . | splitList " " }}
{{- $path := splitList "." . }}
{{- $section := get $config (first $path) }}
{{- if and $section (eq (len $path) 2) }}
{{- $_ := unset $section (last $path) }}
{{- end }}
{{- if or (eq (len $path) 1) (empty $section) }}
{{- $_ := unset $config (first $path) }}
{{- end }}
{{- end -}}
checksum/hookonce-config: {{ $config | toYaml | sha256sum }}
{{- end }}

{{- define "hookonce-lib.image" -}}
{{- $image := (include "hookonce-lib.values" . | fromYaml).image }}
{{- with $image.registry }}{{ . }}/{{ end }}
{{- $image.repository }}:{{ $image.tag | default (include "hookonce-lib.version" .) }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "hookonce-lib.port" -}}
{{- (include "hookonce-lib.values" . | fromYaml).config | dig "listen" "port" 8081 | int }}
{{- end }}

{{- define "hookonce-lib.adminPort" -}}
{{- (include "hookonce-lib.values" . | fromYaml).config | dig "admin" "port" 9090 | int }}
{{- end }}
