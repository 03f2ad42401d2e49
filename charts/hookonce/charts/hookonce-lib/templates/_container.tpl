{{/*
The gateway's container, the same in every way of installing it.

It starts before the application and stops after it: startup asks /livez, which needs neither Redis nor the
application, so that nothing but a wrong configuration can keep the application from starting; at the end the
application's own preStop and the drain begin together, and SIGTERM comes when the application has gone.
Ports are numbers wherever others refer to them: names of a native sidecar's ports are unknown to Services before
Kubernetes 1.32, and to network policies.
*/}}
{{- define "hookonce-lib.container" -}}
{{- $values := include "hookonce-lib.values" . | fromYaml }}
{{- $adminPort := include "hookonce-lib.adminPort" . | int -}}
name: hookonce
image: {{ include "hookonce-lib.image" . }}
imagePullPolicy: {{ $values.image.pullPolicy }}
{{- if or $values.nodeOptions $values.extraEnv }}
env:
  {{- with $values.nodeOptions }}
  - name: NODE_OPTIONS
    value: {{ . | quote }}
  {{- end }}
  {{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- with $values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: hookonce
    containerPort: {{ include "hookonce-lib.port" . }}
    protocol: TCP
  - name: hookonce-admin
    containerPort: {{ $adminPort }}
    protocol: TCP
startupProbe:
  httpGet:
    path: /livez
    port: {{ $adminPort }}
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /livez
    port: {{ $adminPort }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet:
    path: /readyz
    port: {{ $adminPort }}
  periodSeconds: 5
  timeoutSeconds: 2
lifecycle:
  preStop:
    httpGet:
      path: /-/drain
      port: {{ $adminPort }}
resources:
  {{- toYaml $values.resources | nindent 2 }}
securityContext:
  {{- toYaml $values.securityContext | nindent 2 }}
volumeMounts:
  - name: hookonce-config
    mountPath: /etc/hookonce
    readOnly: true
  - name: hookonce-secrets
    mountPath: /etc/hookonce/secrets
    readOnly: true
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The container as a native sidecar: an entry of initContainers that goes on running. */}}
{{- define "hookonce-lib.initContainers" -}}
- {{ include "hookonce-lib.container" . | indent 2 | trim }}
  restartPolicy: Always
{{- end }}
