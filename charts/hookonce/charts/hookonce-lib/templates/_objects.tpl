{{/* Whole objects: the configuration, and a Service through which webhooks come in. The application's own Service stays as it is. */}}
{{- define "hookonce-lib.configMap" -}}
{{- $values := include "hookonce-lib.values" . | fromYaml -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "hookonce-lib.fullname" . }}
  labels:
    {{- include "hookonce-lib.labels" . | nindent 4 }}
data:
  config.yaml: |
    {{- $values.config | toYaml | nindent 4 }}
{{- end }}

{{- define "hookonce-lib.service" -}}
{{- $values := include "hookonce-lib.values" . | fromYaml -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "hookonce-lib.fullname" . }}
  labels:
    {{- merge (include "hookonce-lib.labels" . | fromYaml) $values.service.labels | toYaml | nindent 4 }}
  {{- with $values.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $values.service.type }}
  selector:
    {{- include "hookonce-lib.podLabels" . | nindent 4 }}
  ports:
    - name: http
      port: {{ $values.service.port | int }}
      targetPort: {{ include "hookonce-lib.port" . }}
      protocol: TCP
      appProtocol: http
{{- end }}
