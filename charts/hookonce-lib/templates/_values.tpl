{{/*
Every template of this chart takes (dict "values" <mapping> "ctx" $).

"values" is what the caller has of the values below; the rest is filled in. charts/hookonce repeats them in its
values.yaml, where each is explained.
*/}}
{{- define "hookonce-lib.defaults" -}}
nameOverride: ""
fullnameOverride: ""
commonLabels: {}
image:
  registry: ghcr.io
  repository: hookonce/hookonce
  tag: ""
  digest: ""
  pullPolicy: IfNotPresent
config: {}
secrets:
  existingSecret: ""
  items: []
redis:
  auth:
    existingSecret: ""
    passwordKey: password
  tls:
    existingSecret: ""
    caKey: ca.crt
ledger:
  existingSecret: ""
  urlKey: url
  caKey: ""
queue:
  existingSecret: ""
  urlKey: url
  auth:
    existingSecret: ""
    passwordKey: password
service:
  type: ClusterIP
  port: 80
  annotations: {}
  labels: {}
nodeOptions: ""
extraEnv: []
extraEnvFrom: []
extraVolumes: []
extraVolumeMounts: []
resources:
  requests:
    cpu: 50m
    memory: 112Mi
  limits:
    memory: 192Mi
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* The values in full; gateways share events by a name that is the same for every pod of one release. */}}
{{- define "hookonce-lib.values" -}}
{{- $values := mergeOverwrite (include "hookonce-lib.defaults" . | fromYaml) (deepCopy (.values | default dict)) }}
{{- if not $values.config.service }}
{{- $_ := set $values.config "service" (printf "%s/%s" .ctx.Release.Namespace (include "hookonce-lib.fullname" .)) }}
{{- end }}
{{- toYaml $values }}
{{- end }}

{{/* Of the image that belongs to these templates. */}}
{{- define "hookonce-lib.version" -}}
0.1.0
{{- end }}
