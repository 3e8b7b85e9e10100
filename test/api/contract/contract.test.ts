import t from 'tap'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { contract, type Route } from '#api/contract/contract.ts'
import { contractDocument } from '#api/contract/document.ts'
import type { Shape } from '#shared/core/shape.ts'
import { accountActions } from '#shared/events/account-events.postgres.ts'
import { refusalOf } from '#test/support/checks/contract.ts'

/** Every endpoint of the two contract documents. */
const endpoints = {
  '/health': 'GET',
  '/v1/keys': 'POST',
  '/v1/memory/prepare': 'POST',
  '/v1/memory/ingest': 'POST',
  '/v1/memory/search': 'POST',
  '/v1/memory/list': 'GET',
  '/v1/memory/edit': 'POST',
  '/v1/memory/upload': 'POST',
  '/v1/memory/stats': 'GET',
  '/v1/memory/:key/stats': 'GET',
  '/v1/memory/warmup': 'POST',
  '/v1/memory': 'DELETE',
  '/v1/memory/consolidate/checkout': 'POST',
  '/v1/memory/consolidate/commit': 'POST',
  '/v1/memory/inspect': 'POST',
  '/v1/memory/date-search': 'POST',
  '/v1/memory/delete-ids': 'POST',
  '/v1/memory/transfer': 'POST',
  '/v1/memory/graft': 'POST',
  '/v1/chat/completions': 'POST',
  '/v1/messages': 'POST',
  '/v1/models/:model:generateContent': 'POST',
  '/v1/models/:model:streamGenerateContent': 'POST',
  '/v1/models': 'GET',
  '/v1/account/usage': 'GET',
  '/v1/audio/transcriptions': 'POST',
  '/v1/audio/speech': 'POST',
  '/v1/images/generations': 'POST',
  '/v1/embeddings': 'POST',
  '/v1/orgs': 'POST GET',
  '/v1/orgs/:orgId': 'GET PATCH DELETE',
  '/v1/orgs/:orgId/keys': 'POST GET',
  '/v1/orgs/:orgId/keys/:keyId': 'GET DELETE',
  '/v1/orgs/:orgId/roles': 'POST GET',
  '/v1/orgs/:orgId/roles/:roleId': 'PATCH DELETE',
  '/v1/orgs/:orgId/users': 'POST GET',
  '/v1/orgs/:orgId/users/:userId': 'PATCH DELETE',
  '/v1/orgs/:orgId/role-assignments': 'POST',
  '/v1/orgs/:orgId/users/:userId/memory-key': 'POST',
  '/v1/orgs/:orgId/tags': 'POST GET',
  '/v1/orgs/:orgId/tags/:tagId': 'PATCH DELETE',
  '/v1/orgs/:orgId/instructions': 'PUT GET',
  '/v1/orgs/:orgId/memories': 'POST GET',
  '/v1/orgs/:orgId/memories/:memId': 'PATCH DELETE',
  '/v1/orgs/:orgId/memories/:memId/audit': 'GET',
  '/v1/orgs/:orgId/audit': 'GET',
  '/v1/orgs/:orgId/memories/review': 'GET',
  '/v1/orgs/:orgId/memories/:memId/review': 'POST',
  '/v1/orgs/:orgId/debug/passes': 'GET',
}
const documented = Object.entries(endpoints).flatMap(([path, methods]) =>
  methods.split(' ').map(method => `${method} ${path}`),
)
const routes = Object.keys(contract) as Route[]

t.test('the endpoints of the documents are there, and all others are marked as ours', async t => {
  const unmarked = routes.filter(route => !contract[route].endpoint.ours)
  t.same(unmarked.toSorted(), documented.toSorted())
})

t.test('the document is JSON Schema 2020-12, and every schema of it compiles', async t => {
  const ajv = new Ajv2020({
    strict: true,
    allowUnionTypes: true,
    keywords: ['x-says', 'x-clamped', 'x-contract', 'x-moves', 'x-strict'],
  })
  addFormats.default(ajv)
  const { $id, $defs } = contractDocument
  t.equal(ajv.validateSchema({ $id, $defs }), true, JSON.stringify(ajv.errors))
  ajv.addSchema({ $id, $defs })
  for (const name of Object.keys($defs)) {
    t.type(ajv.compile({ $ref: `${$id}#/$defs/${name}` }), 'function', name)
  }
})

t.test('every part of every endpoint judges a value', async t => {
  for (const route of routes) {
    const { params, query, headers, body, answers } = contract[route] as {
      params?: Shape<unknown>
      query?: Shape<unknown>
      headers?: Shape<unknown>
      body?: Shape<unknown>
      answers: Record<string, Shape<unknown>>
    }
    for (const shape of [params, query, headers, body, ...Object.values(answers)]) {
      if (shape) t.doesNotThrow(() => refusalOf(shape, null), route)
    }
  }
})

t.test('everything but the open endpoints asks for a credential', async t => {
  const open = routes.filter(route => contract[route].endpoint.auth.length === 0)
  const health = ['GET /health', 'GET /health/live', 'GET /health/ready']
  t.same(open, [...health, 'GET /', 'GET /v1/receipts/key', 'GET /v1/receipts/:receiptId'])
  for (const route of routes.filter(name => name.includes('/v1/orgs'))) {
    t.same(contract[route].endpoint.auth, ['admin'], route)
  }
  for (const route of routes) {
    const { auth, errors } = contract[route].endpoint
    t.equal(errors.includes(401), auth.length > 0, route)
  }
})

t.test('the statuses the contract promises are among the refusals', async t => {
  const promised: [Route, number[]][] = [
    ['POST /v1/memory/edit', [403, 404, 409, 502]],
    ['POST /v1/memory/upload', [402, 403, 413]],
    ['POST /v1/memory/consolidate/checkout', [403]],
    ['POST /v1/memory/consolidate/commit', [409]],
    ['POST /v1/memory/transfer', [400, 401, 403, 413, 500]],
    ['POST /v1/memory/graft', [400, 401, 403, 413, 500]],
    ['POST /v1/chat/completions', [401, 402, 429, 502]],
    ['GET /v1/orgs/:orgId', [401, 404]],
    ['POST /v1/orgs/:orgId/users', [400, 409]],
  ]
  for (const [route, statuses] of promised) {
    const { errors } = contract[route].endpoint
    t.same(
      statuses.filter(status => !errors.includes(status)),
      [],
      route,
    )
  }
})

t.test('the contract lists the actions that are recorded, and no others', async t => {
  const listed = contractDocument.$defs['AccountAction'] as { enum: string[] }
  t.same(listed.enum, accountActions)
})
