import { execFile, spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parse as parseYaml } from 'tap-yaml'
import { version } from '#api/edge/version.ts'
import {
  findHelm,
  noHelm,
  readKubernetes,
  renderChart,
  type KubernetesObject,
} from '#test/support/start/kubernetes.ts'

const chart = join(process.cwd(), 'scripts/deploy/kubernetes')
const components = ['autoscaling', 'backup', 'monitoring']
const helm = findHelm()
const skip = helm === undefined && noHelm

// oxlint-disable-next-line typescript/no-explicit-any -- objects of a dozen kinds
type Any = any

/** Manifests as the chart gives them: what it adds itself is set, in the order of names. */
function asRendered(objects: KubernetesObject[]): KubernetesObject[] {
  const changed = (JSON.parse(JSON.stringify(objects)) as Any[]).filter(
    ({ kind }) => kind !== 'Namespace',
  )
  for (const { kind, metadata, spec } of changed) {
    if (kind === 'Job') metadata.name += '-1'
    const { template } = spec ?? {}
    for (const container of template?.spec.containers ?? []) {
      if (container.image === 'memory-vault') container.image += `:${version}`
    }
  }
  return sort(changed)
}

const sort = (objects: KubernetesObject[]): KubernetesObject[] => {
  const nameOf = ({ kind, metadata }: KubernetesObject): string => `${kind} ${metadata.name}`
  return objects.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
}

/** Takes out the digest of the settings, which makes new pods when they change. */
function withoutDigests(objects: KubernetesObject[]): KubernetesObject[] {
  for (const { kind, spec } of objects as Any[]) {
    if (kind !== 'Deployment') continue
    t.match(spec.template.metadata.annotations['checksum/settings'], /^[0-9a-f]{64}$/)
    delete spec.template.metadata.annotations
  }
  return sort(objects)
}

const values = (t: Test, value: object): string[] => {
  const file = join(t.testdir({}), 'values.json')
  writeFileSync(file, JSON.stringify(value))
  return ['--values', file]
}

t.test('the chart renders the manifests', { skip }, async t => {
  t.same(withoutDigests(await renderChart(helm!, chart)), asRendered(readKubernetes(chart)))
})

t.test(
  'with all components it renders these too, and counts belong to who scales',
  { skip },
  async t => {
    const enabled = Object.fromEntries(components.map(name => [name, { enabled: true }]))
    const expected = asRendered([
      ...readKubernetes(chart),
      ...components.flatMap(name => readKubernetes(join(chart, 'components', name))),
    ])
    for (const { kind, metadata, spec } of expected as Any[]) {
      if (kind === 'Deployment' && metadata.name !== 'memory-vault-org') delete spec.replicas
    }
    t.same(withoutDigests(await renderChart(helm!, chart, values(t, enabled))), expected)
  },
)

t.test('values reach what they name', { skip }, async t => {
  const external = {
    enabled: true,
    store: { kind: 'ClusterSecretStore', name: 'aws' },
    refs: { MASTER_KEY: { key: 'vault/production', property: 'master_key' } },
  }
  const objects = await renderChart(
    helm!,
    chart,
    values(t, {
      image: { repository: 'registry.example.com/memory-vault', tag: '9.9.9' },
      settings: { INDEX_CACHE_MB: 1024, PUBLIC_URL: 'https://memory.example.com' },
      secrets: { name: 'own', keys: { DATABASE_URL: { name: 'pg-app', key: 'uri' } }, external },
      web: { replicas: 3, resources: { limits: { memory: '4Gi' } } },
      autoscaling: { enabled: false },
      pod: { nodeSelector: { pool: 'memory' } },
      container: { imagePullPolicy: 'Always' },
      ingress: { className: 'nginx', host: 'memory.example.com', tlsSecret: 'tls' },
      disruptionBudget: { minAvailable: 2 },
      networkPolicy: { egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }] },
    }),
  )
  const find = (kind: string, name: string): Any =>
    objects.find(one => one.kind === kind && one.metadata.name === name)
  t.match(find('ConfigMap', 'memory-vault-settings').data, {
    INDEX_CACHE_MB: '1024',
    PUBLIC_URL: 'https://memory.example.com',
    PORT: '3000',
  })
  const { spec } = find('Deployment', 'memory-vault-web')
  t.equal(spec.replicas, 3)
  t.match(spec.template.spec, {
    nodeSelector: { pool: 'memory' },
    automountServiceAccountToken: false,
  })
  t.match(spec.template.spec.containers[0], {
    image: 'registry.example.com/memory-vault:9.9.9',
    imagePullPolicy: 'Always',
    envFrom: [{}, { secretRef: { name: 'own' } }],
    env: [{ name: 'DATABASE_URL', valueFrom: { secretKeyRef: { name: 'pg-app', key: 'uri' } } }],
    resources: { requests: { cpu: '500m' }, limits: { memory: '4Gi' } },
    securityContext: { readOnlyRootFilesystem: true },
  })
  const worker = find('Deployment', 'memory-vault-worker').spec.template.spec.containers[0]
  t.same(
    worker.env.map((one: { name: string }) => one.name),
    ['METRICS_PORT', 'DATABASE_URL'],
  )
  t.match(find('Ingress', 'memory-vault').spec, {
    ingressClassName: 'nginx',
    tls: [{ hosts: ['memory.example.com'], secretName: 'tls' }],
    rules: [{ host: 'memory.example.com', http: { paths: [{ path: '/' }] } }],
  })
  t.equal(find('PodDisruptionBudget', 'memory-vault-web').spec.minAvailable, 2)
  t.same(find('NetworkPolicy', 'memory-vault').spec.egress, [
    { to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] },
  ])
  t.match(find('ExternalSecret', 'own').spec, {
    secretStoreRef: { name: 'aws' },
    target: { name: 'own' },
    data: [{ secretKey: 'MASTER_KEY', remoteRef: external.refs.MASTER_KEY }],
  })
})

t.test('an update has a job of its own; changed settings make new pods', { skip }, async t => {
  const changed = values(t, { settings: { LOG_LEVEL: 'debug' } })
  const [before, after] = await Promise.all([
    renderChart(helm!, chart),
    renderChart(helm!, chart, ['--is-upgrade', ...changed]),
  ])
  const digests = (objects: KubernetesObject[]): string[] =>
    (objects as Any[])
      .filter(({ kind }) => kind === 'Deployment')
      .map(({ spec }) => spec.template.metadata.annotations['checksum/settings'])
  for (const digest of digests(after)) t.notOk(digests(before).includes(digest))
})

t.test(
  'what the chart does not know, and a secret among the settings, is refused',
  { skip },
  async t => {
    const wrong = [
      { settngs: {} },
      { settings: { MASTER_KEY: '11' } },
      { settings: { OPENAI_API_KEY: 'sk' } },
      { web: { replica: 3 } },
      { image: { digest: 'latest' } },
    ]
    for (const value of wrong) {
      await t.rejects(renderChart(helm!, chart, values(t, value)), JSON.stringify(value))
    }
  },
)

t.test('helm lint has nothing against it', { skip }, async t => {
  const { stdout } = await promisify(execFile)(helm!, ['lint', '--strict', chart])
  t.match(stdout, '0 chart(s) failed')
})

t.test('labels reach what the Prometheus operator looks for', { skip }, async t => {
  const monitoring = { enabled: true, labels: { release: 'prometheus' } }
  const objects = await renderChart(helm!, chart, values(t, { monitoring }))
  for (const kind of ['PodMonitor', 'PrometheusRule']) {
    const found = objects.filter(one => one.kind === kind) as Any[]
    t.same(
      found.map(({ metadata }) => metadata.labels),
      [{ release: 'prometheus' }],
      kind,
    )
  }
})

t.test('the Terraform example is well formed and names values that the chart has', async t => {
  const folder = 'scripts/deploy/terraform'
  const text = globSync(`${folder}/*.tf`)
    .map(file => readFileSync(file, 'utf8'))
    .join('\n')
  const known = parseYaml(readFileSync(join(chart, 'values.yaml'), 'utf8')) as object
  const [, given = ''] = /values = \[yamlencode\(\{\n([^]*?)\n {2}\}\)\]/.exec(text) ?? []
  const named = [...given.matchAll(/^ {4}(\w+)\s*=/gm)].map(one => one[1]!)
  t.ok(named.length > 2, named.join(' '))
  for (const name of named) t.ok(Object.hasOwn(known, name), name)
  const formatted = spawnSync('terraform', ['fmt', '-check', '-diff', '-recursive', folder])
  if (formatted.error) return t.comment('terraform is not installed: the form was not checked')
  t.equal(formatted.status, 0, String(formatted.stdout) + String(formatted.stderr))
})
