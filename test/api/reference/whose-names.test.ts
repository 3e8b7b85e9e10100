import t from 'tap'
import { buildOpenApi } from '#api/reference/openapi.ts'

type Marked = { 'x-contract'?: boolean; properties?: Record<string, Marked> }
type Operation = Marked & { parameters?: (Marked & { name: string })[] }

const { paths, components } = buildOpenApi('1.0.0')
const schemas = components.schemas as Record<string, Marked>
const operation = (method: string, path: string) => paths[path]![method] as Operation

t.test('every operation, field and parameter says whose it is', async t => {
  const unmarked: string[] = []
  const visit = (name: string, { properties = {}, ...schema }: Marked): void => {
    if (typeof schema['x-contract'] !== 'boolean') unmarked.push(name)
    for (const [field, inner] of Object.entries(properties)) visit(`${name}.${field}`, inner)
  }
  for (const [name, schema] of Object.entries(schemas)) visit(name, schema)
  for (const operations of Object.values(paths)) {
    for (const described of Object.values(operations) as Operation[]) {
      visit('operation', { 'x-contract': described['x-contract']! })
      for (const { name, ...rest } of described.parameters ?? [])
        visit(name, { 'x-contract': rest['x-contract']! })
    }
  }
  t.same(unmarked, [])
})

t.test('what the two documents of the contract name is the contract', async t => {
  const { properties: row = {} } = schemas.RecalledMemory!
  for (const field of [
    'id',
    'tier',
    'role',
    'content',
    'score',
    'window',
    'timestamp',
    'source',
    'importance',
  ]) {
    t.equal(row[field]?.['x-contract'], true, field)
  }
  for (const field of ['why', 'similarity', 'metadata'])
    t.equal(row[field]?.['x-contract'], false, field)
  const { properties: uploaded = {} } = schemas.UploadAnswer!
  t.equal(uploaded.stats?.properties?.stored?.['x-contract'], true)
  t.equal(uploaded.stats?.properties?.skipped?.['x-contract'], false)
  t.equal(operation('post', '/v1/memory/search')['x-contract'], true)
  t.equal(operation('get', '/v1/memory/export')['x-contract'], false)
  const { parameters = [] } = operation('get', '/v1/memory/list')
  const asOf = parameters.find(({ name }) => name === 'as_of')
  const tier = parameters.find(({ name }) => name === 'tier')
  t.same([asOf?.['x-contract'], tier?.['x-contract']], [false, true])
})

t.test('what only endpoints and fields of ours refer to is ours', async t => {
  for (const [name, belongs] of [
    ['Debt', true],
    ['ErrorBody', true],
    ['Webhook', false],
    ['BlockLine', false],
  ] as const) {
    t.equal(schemas[name]?.['x-contract'], belongs, name)
  }
})
