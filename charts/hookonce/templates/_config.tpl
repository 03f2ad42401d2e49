{{/* The configuration file: config as it is written, and what follows from other values. */}}
{{- define "hookonce.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if .Values.redis.enabled }}
{{- $redis := $config.redis | default dict }}
{{- $_ := set $redis "nodes" (include "hookonce.redis.nodes" . | fromYamlArray) }}
{{- $_ := set $config "redis" $redis }}
{{- end }}
{{- if .Values.test.enabled }}
{{- $_ := set $config "routes" (append $config.routes (include "hookonce.test.route" . | fromYaml)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- define "hookonce.redis.nodes" -}}
{{- $service := include "hookonce.redis.fullname" . }}
{{- range $i := until (int .Values.redis.nodes) }}
- url: {{ ternary "rediss" "redis" (ne $.Values.redis.tls.existingSecret "") }}://{{ $service }}-{{ $i }}.{{ $service }}.{{ $.Release.Namespace }}.svc:6379
  {{- if $.Values.redis.auth.existingSecret }}
  username: hookonce
  password:
    file: /etc/hookonce/secrets/redis-password
  {{- end }}
  {{- if $.Values.redis.tls.existingSecret }}
  tls:
    ca: /etc/hookonce/secrets/redis-ca.crt
  {{- end }}
{{- end }}
{{- end }}

{{/* Statuses by which an application says that it does not know the path: they too end the event, so that a copy is a duplicate. */}}
{{- define "hookonce.test.route" -}}
name: hookonce-test
path: {{ .Values.test.path }}
verify:
  scheme: hmac-sha256
  header: x-hookonce-test-signature
  signed: "{timestamp}.{body}"
  timestamp:
    header: x-hookonce-test-timestamp
secrets:
  - file: /etc/hookonce/secrets/{{ .Values.test.secretKey }}
identity:
  parts:
    - json: /id
completeOn: [301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 410, 411, 415, 422, 501]
retention: 1h
{{- end }}
