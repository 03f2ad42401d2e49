{{/*
What the container mounts: whole folders and never a subPath, which would not see a change; and all secrets in one
folder, whichever Secrets they lie in.
*/}}
{{- define "hookonce-lib.volumes" -}}
- name: hookonce-config
  configMap:
    name: {{ include "hookonce-lib.fullname" . }}
    items:
      - key: config.yaml
        path: config.yaml
{{ include "hookonce-lib.secretsVolume" . }}
{{- with (include "hookonce-lib.values" . | fromYaml).extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
The signing secrets keep the names of their keys; passwords and certificates get names of their own. The Secret that
is there by default may be missing: a route without signature needs none, and the gateway names the file that it lacks.
*/}}
{{- define "hookonce-lib.secretsVolume" -}}
{{- $values := include "hookonce-lib.values" . | fromYaml -}}
- name: hookonce-secrets
  projected:
    sources:
      - secret:
          name: {{ include "hookonce-lib.secretName" . }}
          {{- with $values.secrets.items }}
          items:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- if not $values.secrets.existingSecret }}
          optional: true
          {{- end }}
      {{- with $values.redis.auth }}
      {{- if .existingSecret }}
      - secret:
          name: {{ .existingSecret }}
          items:
            - key: {{ .passwordKey }}
              path: redis-password
      {{- end }}
      {{- end }}
      {{- with $values.redis.tls }}
      {{- if .existingSecret }}
      - secret:
          name: {{ .existingSecret }}
          items:
            - key: {{ .caKey }}
              path: redis-ca.crt
      {{- end }}
      {{- end }}
      {{- with $values.ledger }}
      {{- if .existingSecret }}
      - secret:
          name: {{ .existingSecret }}
          items:
            - key: {{ .urlKey }}
              path: ledger-url
            {{- if .caKey }}
            - key: {{ .caKey }}
              path: ledger-ca.crt
            {{- end }}
      {{- end }}
      {{- end }}
      {{- with $values.queue }}
      {{- if .existingSecret }}
      - secret:
          name: {{ .existingSecret }}
          items:
            - key: {{ .urlKey }}
              path: queue-url
      {{- end }}
      {{- if .auth.existingSecret }}
      - secret:
          name: {{ .auth.existingSecret }}
          items:
            - key: {{ .auth.passwordKey }}
              path: queue-password
      {{- end }}
      {{- end }}
{{- end }}

{{- define "hookonce-lib.secretName" -}}
{{- (include "hookonce-lib.values" . | fromYaml).secrets.existingSecret | default (printf "%s-secrets" (include "hookonce-lib.fullname" . | trunc 55 | trimSuffix "-")) }}
{{- end }}
