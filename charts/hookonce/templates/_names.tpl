{{/* The values, with the configuration as the gateways are to read it. */}}
{{- define "hookonce.values" -}}
{{- merge (dict "config" (include "hookonce.config" . | fromYaml)) .Values | toYaml }}
{{- end }}

{{- define "hookonce.fullname" -}}
{{- include "hookonce-lib.fullname" (dict "values" .Values "ctx" .) }}
{{- end }}

{{/* Called with (dict "ctx" $ "component" "redis"). What is here and in selectors no upgrade changes. */}}
{{- define "hookonce.selectorLabels" -}}
app.kubernetes.io/name: {{ .ctx.Values.nameOverride | default "hookonce" }}
app.kubernetes.io/instance: {{ .ctx.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Called likewise. */}}
{{- define "hookonce.labels" -}}
{{- $common := include "hookonce-lib.labels" (dict "values" .ctx.Values "ctx" .ctx) | fromYaml }}
{{- merge (include "hookonce.selectorLabels" . | fromYaml) $common | toYaml }}
{{- end }}

{{/* Called likewise. Nothing in a pod template changes with the chart alone, which would restart voters for nothing. */}}
{{- define "hookonce.podLabels" -}}
{{- merge (include "hookonce.selectorLabels" . | fromYaml) .ctx.Values.commonLabels | toYaml }}
{{- end }}

{{- define "hookonce.redis.fullname" -}}
{{- printf "%s-redis" (include "hookonce.fullname" . | trunc 46 | trimSuffix "-") }}
{{- end }}
