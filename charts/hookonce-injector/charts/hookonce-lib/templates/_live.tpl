{{/* Generated from src/config/live.ts (npm run charts). */}}
{{- define "hookonce-lib.live" -}}
routes unmatched trustedProxies limits readiness drain log admin.token upstream.maxInFlight upstream.maxWaiting upstream.maxWait upstream.maxProxied
{{- end }}
