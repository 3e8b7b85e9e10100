import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse as parseYaml } from 'tap-yaml'
import { workerNodeOptions } from '#scripts/worker-options.ts'
import { readConfig } from '#shared/core/config.ts'
import { copiedPaths, parseDockerfile } from '#test/support/start/container-image.ts'
import { readKubernetes } from '#test/support/start/kubernetes.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const deploy = join(root, 'scripts/deploy')
const read = (path: string): string => readFileSync(join(deploy, path), 'utf8')
const instructions = parseDockerfile(read('Dockerfile'))
const secrets = {
  DATABASE_URL: 'postgres://vault@postgres/vault',
  MONGODB_URI: 'mongodb://mongodb/vault',
  MASTER_KEY: '11'.repeat(32),
  KEY_PEPPER: 'a pepper for tests',
}

/** Process types and their commands, as the Procfile has them. */
const processes = new Map(
  readFileSync(join(root, 'Procfile'), 'utf8')
    .trim()
    .split('\n')
    .map(line => line.split(/: (.*)/, 2) as [string, string]),
)

t.test('workers of the Procfile run with the options of those of npm start', t => {
  const workers = [...processes.values()].filter(command => command.includes('workers/index.ts'))
  t.ok(workers.length > 0)
  const start = ['node', ...workerNodeOptions, 'workers/index.ts '].join(' ')
  for (const command of workers) t.ok(command.startsWith(start), command)
  t.end()
})

t.test('the image has what its instructions name, without rights', async t => {
  for (const instruction of instructions) {
    for (const path of copiedPaths(instruction).slice(0, -1)) {
      t.ok(existsSync(join(root, path)), path)
    }
  }
  const sent = read('Dockerfile.dockerignore').match(/(?<=^!).+/gm) ?? []
  const used = instructions.flatMap(one => copiedPaths(one).slice(0, -1))
  t.same(new Set(used.map(path => path.split('/')[0])), new Set(sent))
  t.same(
    instructions.filter(({ name }) => name === 'USER').map(({ value }) => value),
    ['node'],
  )
  const required = /\d+/.exec(process.env.npm_package_engines_node ?? '24')![0]
  for (const { name, value } of instructions) {
    if (name === 'FROM') t.match(value, new RegExp(`^(?:--platform=\\S+ )?node:${required}-.*slim`))
  }
})

type ComposeService = {
  command?: string[]
  env_file?: string
  environment?: Record<string, string>
  depends_on?: Record<string, unknown>
}

/** YAML's merge keys, which compose reads and YAML 1.2 does not. */
const withMerges = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withMerges)
  if (typeof value !== 'object' || value === null) return value
  const { '<<': merged, ...own } = value as Record<string, unknown>
  const entries = Object.entries(own).map(([name, one]) => [name, withMerges(one)])
  return { ...(withMerges(merged) as object), ...Object.fromEntries(entries) }
}

t.test('compose starts the processes of the Procfile with a complete environment', async t => {
  const { services, volumes } = withMerges(parseYaml(read('compose.yaml'))) as {
    services: Record<string, ComposeService & { volumes?: string[] }>
    volumes: Record<string, unknown>
  }
  for (const [type, command] of processes) {
    t.equal(services[type]?.command?.join(' '), command, type)
  }
  const example = Object.fromEntries(
    [...read('compose.env.example').matchAll(/^(?:# )?([A-Z_]+)=(.*)$/gm)].map(one => one.slice(1)),
  ) as Record<string, string>
  for (const type of processes.keys()) {
    const { environment, env_file, depends_on } = services[type]!
    t.equal(env_file, 'compose.env')
    t.doesNotThrow(() =>
      readConfig({
        ...secrets,
        ...example,
        MASTER_KEY: secrets.MASTER_KEY,
        KEY_PEPPER: secrets.KEY_PEPPER,
        ...environment,
        ADMIN_EMAIL: 'a@example.com',
      }),
    )
    for (const name of Object.keys(depends_on ?? {})) t.ok(services[name], name)
  }
  t.match(services.postgres!.environment!.POSTGRES_PASSWORD, ':?', 'no database starts without')
  t.match(services.mongodb!.environment!.MONGODB_INITDB_ROOT_PASSWORD, ':?')
  const mounted = Object.values(services)
    .flatMap(one => one.volumes ?? [])
    .map(one => one.split(':')[0]!)
  const isFile = (source: string): boolean => source.startsWith('.')
  t.same(new Set(mounted.filter(one => !isFile(one))), new Set(Object.keys(volumes)))
  for (const file of mounted.filter(isFile)) {
    t.ok(existsSync(join(deploy, file)) || file === './backup', file)
  }
  const { scrape_configs: scraped } = parseYaml(read('prometheus.yaml')) as {
    scrape_configs: { static_configs: { targets: string[] }[] }[]
  }
  const targets = scraped.flatMap(one => one.static_configs.flatMap(({ targets }) => targets))
  const running = [...processes.keys()].filter(type => type !== 'release')
  t.same(
    targets,
    running.map(type => `${type}:${services[type]!.environment!.METRICS_PORT ?? 3000}`),
  )
})

type Manifest = {
  kind: string
  metadata: { name: string }
  data?: Record<string, string>
  spec?: {
    template?: { metadata: { labels: object }; spec: PodSpec }
    selector?: { matchLabels?: object }
    scaleTargetRef?: { name: string }
    replicas?: number
  }
}
type PodSpec = { securityContext: object; containers: Container[] }
type Container = {
  name: string
  image: string
  command: string[]
  env?: { name: string; value: string }[]
  envFrom: Record<string, { name: string }>[]
  ports?: { name: string; containerPort: number }[]
  securityContext: object
} & Record<
  'readinessProbe' | 'livenessProbe',
  { httpGet: { path: string; port: string } } | undefined
>

const readManifests = (folder: string): Manifest[] => readKubernetes(join(deploy, folder))
const manifests = readManifests('kubernetes')
const components = readdirSync(join(deploy, 'kubernetes/components'))

t.test('the manifests run the processes of the Procfile under the restricted standard', async t => {
  const settings = manifests.find(({ kind }) => kind === 'ConfigMap')!
  const containers = manifests.flatMap(({ spec }) => {
    const { template } = spec ?? {}
    if (!template) return []
    t.match(template.spec.securityContext, {
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    if (spec?.selector) t.same(spec.selector.matchLabels, template.metadata.labels)
    return template.spec.containers
  })
  t.same(new Map(containers.map(({ name, command }) => [name, command.join(' ')])), processes)
  for (const { envFrom, env = [], ports = [], securityContext, ...container } of containers) {
    t.same(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    t.same(envFrom, [
      { configMapRef: { name: settings.metadata.name } },
      { secretRef: { name: 'memory-vault-secrets' } },
    ])
    const own = Object.fromEntries(env.map(({ name, value }) => [name, value]))
    const config = readConfig({ ...secrets, ...settings.data, ...own })
    for (const probe of [container.readinessProbe, container.livenessProbe]) {
      if (!probe) continue
      const port = ports.find(({ name }) => name === probe.httpGet.port)
      t.equal(port?.containerPort, config.metricsPort ?? config.port, container.name)
      t.match(probe.httpGet.path, /^\/health\/(?:ready|live)$/)
    }
  }
})

t.test(
  'every manifest is in the kustomization, and the tools that are here take the files',
  async t => {
    const { resources } = parseYaml(read('kubernetes/kustomization.yaml')) as {
      resources: string[]
    }
    const chart = ['Chart.yaml', 'values.yaml', 'values.schema.json', 'templates', '.helmignore']
    t.same(
      new Set([...resources, 'kustomization.yaml', 'components', ...chart]),
      new Set(readdirSync(join(deploy, 'kubernetes'))),
    )
    const has = (program: string): boolean => spawnSync(program, ['version']).error === undefined
    if (has('kubectl')) {
      const overlay = mkdtempSync(join(tmpdir(), 'vault-overlay-'))
      t.teardown(() => rmSync(overlay, { recursive: true, force: true }))
      cpSync(join(deploy, 'kubernetes'), join(overlay, 'base'), { recursive: true })
      const used = components.map(name => `base/components/${name}`)
      writeFileSync(
        join(overlay, 'kustomization.yaml'),
        JSON.stringify({ resources: ['base'], components: used }),
      )
      const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', overlay])
      t.equal(status, 0, String(stderr))
      const rendered = String(stdout)
        .split(/^---$/m)
        .map(text => parseYaml(text) as Manifest)
      const added = components.flatMap(name => readManifests(`kubernetes/components/${name}`))
      t.equal(rendered.length, manifests.length + added.length)
      // Who scales a deployment owns its count; what it scales is there.
      for (const { spec } of rendered) {
        if (!spec?.scaleTargetRef) continue
        const scaled = rendered.find(
          ({ kind, metadata }) =>
            kind === 'Deployment' && metadata.name === spec.scaleTargetRef!.name,
        )
        t.equal(scaled?.spec?.replicas, undefined, spec.scaleTargetRef.name)
        t.ok(scaled, spec.scaleTargetRef.name)
      }
    } else t.comment('kubectl is not installed: the kustomization was not rendered')
    if (has('nginx')) {
      const directory = mkdtempSync(join(tmpdir(), 'vault-nginx-'))
      t.teardown(() => rmSync(directory, { recursive: true, force: true }))
      const file = join(directory, 'nginx.conf')
      const main = `pid ${directory}/pid; error_log stderr; events {}`
      writeFileSync(file, `${main} http { access_log off; include ${deploy}/nginx.conf; }`)
      const { status, stderr } = spawnSync('nginx', ['-t', '-p', directory, '-c', file])
      t.equal(status, 0, String(stderr))
    } else t.comment('nginx is not installed: its lines were not checked')
  },
)
