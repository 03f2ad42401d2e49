/** What every pod that we render must be like, whatever the values. */
import type { KubeObject } from './helm.ts';

export interface Pods {
  readonly spec: KubeObject;
  readonly labels: Record<string, string>;
  /** Names of volumes that a StatefulSet claims for each pod. */
  readonly claims: readonly string[];
}

/** The pods that an object is or makes. */
export function podsOf(object: KubeObject): Pods[] {
  const { spec, metadata } = object.kind === 'Pod' ? object : (object.spec?.template ?? {});
  if (spec === undefined) return [];
  const claims = (object.spec.volumeClaimTemplates ?? []).map((claim: KubeObject) => claim.metadata.name);
  return [{ spec, labels: metadata.labels ?? {}, claims }];
}

export function containersOf(spec: KubeObject): KubeObject[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

const allowedVolumes = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

/** What Pod Security "restricted" objects to (kubernetes.io/docs/concepts/security/pod-security-standards). */
export function restrictedComplaints(spec: KubeObject): string[] {
  const complaints: string[] = [];
  const complain = (objection: boolean, what: string) => objection && complaints.push(what);
  for (const name of ['hostNetwork', 'hostPID', 'hostIPC']) complain(spec[name] === true, name);
  for (const volume of spec.volumes ?? []) {
    const kinds = Object.keys(volume).filter((key) => key !== 'name');
    complain(!kinds.every((kind) => allowedVolumes.includes(kind)), `volume ${volume.name}: ${kinds.join()}`);
  }
  const pod = spec.securityContext ?? {};
  for (const container of containersOf(spec)) {
    const own = container.securityContext ?? {};
    const at = `container ${container.name}:`;
    complain(own.privileged === true, `${at} privileged`);
    complain(own.allowPrivilegeEscalation !== false, `${at} allowPrivilegeEscalation`);
    complain(!own.capabilities?.drop?.includes('ALL'), `${at} capabilities.drop`);
    complain(
      (own.capabilities?.add ?? []).some((name: string) => name !== 'NET_BIND_SERVICE'),
      `${at} capabilities.add`,
    );
    complain((own.runAsNonRoot ?? pod.runAsNonRoot) !== true, `${at} runAsNonRoot`);
    complain((own.runAsUser ?? pod.runAsUser) === 0, `${at} runAsUser`);
    const seccomp = (own.seccompProfile ?? pod.seccompProfile)?.type;
    complain(!['RuntimeDefault', 'Localhost'].includes(seccomp), `${at} seccompProfile`);
    complain(
      (container.ports ?? []).some((port: KubeObject) => port.hostPort !== undefined),
      `${at} hostPort`,
    );
  }
  return complaints;
}

/** Entries that a list merged by key may hold only once: server-side apply refuses the second. */
export function repeatedEntries(spec: KubeObject): string[] {
  const repeated = (what: string, keys: readonly unknown[]) =>
    keys.filter((key, i) => keys.indexOf(key) !== i).map((key) => `${what}: ${String(key)}`);
  const containers = containersOf(spec);
  return [
    ...repeated(
      'container',
      containers.map(({ name }) => name),
    ),
    ...repeated(
      'volume',
      (spec.volumes ?? []).map(({ name }: KubeObject) => name),
    ),
    ...containers.flatMap(({ name, env = [], ports = [], volumeMounts = [] }) => [
      ...repeated(
        `${name} env`,
        env.map((one: KubeObject) => one.name),
      ),
      ...repeated(
        `${name} port`,
        ports.map((one: KubeObject) => `${one.containerPort}/${one.protocol}`),
      ),
      ...repeated(
        `${name} port name`,
        ports.map((one: KubeObject) => one.name),
      ),
      ...repeated(
        `${name} mount`,
        volumeMounts.map((one: KubeObject) => one.mountPath),
      ),
    ]),
  ];
}

/** Mounts without a volume, and volumes that nothing mounts. */
export function looseMounts({ spec, claims }: Pods): string[] {
  const volumes = [...claims, ...(spec.volumes ?? []).map(({ name }: KubeObject) => name)];
  const mounted = containersOf(spec).flatMap(({ volumeMounts = [] }) =>
    volumeMounts.map(({ name }: KubeObject) => name),
  );
  return [
    ...mounted.filter((name) => !volumes.includes(name)).map((name) => `mount without volume: ${name}`),
    ...volumes.filter((name) => !mounted.includes(name)).map((name) => `volume without mount: ${name}`),
  ];
}

/** Names of the Secrets that a pod refers to, in whatever way. */
export function secretsOf(spec: KubeObject): string[] {
  return [
    ...(spec.volumes ?? []).flatMap(({ secret, projected }: KubeObject) => [
      ...(secret === undefined ? [] : [secret.secretName]),
      ...(projected?.sources ?? []).flatMap((source: KubeObject) => source.secret?.name ?? []),
    ]),
    ...containersOf(spec).flatMap(({ env = [], envFrom = [] }) => [
      ...env.flatMap((one: KubeObject) => one.valueFrom?.secretKeyRef?.name ?? []),
      ...envFrom.flatMap((one: KubeObject) => one.secretRef?.name ?? []),
    ]),
  ];
}
