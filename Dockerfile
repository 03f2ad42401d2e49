# syntax=docker/dockerfile:1
# Whoever publishes the image pins both by digest: --build-arg BUILD=node:26-trixie-slim@sha256:…
ARG BUILD=node:26-trixie-slim
ARG BASE=gcr.io/distroless/nodejs26-debian13:nonroot

# The bundle is plain JavaScript: built once, on the builder's own platform, for all.
FROM --platform=$BUILDPLATFORM ${BUILD} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund
COPY build.ts tsconfig.json ./
COPY src ./src
RUN npm run build

FROM ${BASE}
# The heap takes half of the container's memory limit, the rest is for what lies outside of it: bodies, code, the
# young generation, which Node would let grow.
ENV NODE_ENV=production \
    NODE_OPTIONS="--max-old-space-size-percentage=50 --max-semi-space-size=4"
WORKDIR /app
COPY --from=build --chown=0:0 /src/dist/ ./
COPY --chown=0:0 LICENSE ./
USER 65532:65532
EXPOSE 8081 9090
STOPSIGNAL SIGTERM
# The base starts Node.js, which is process 1 and hears the signal itself.
CMD ["main.js", "serve"]
