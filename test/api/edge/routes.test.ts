import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { createRouter } from '#api/routes/index.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { errorMessage, isOutsideContract } from '#test/support/checks/contract.ts'

const backend = await createTestBackend(t)
const api = await startTestApi(t, backend, await buildKey(backend))
const anonymous = createTestClient(api.base)

const served = createRouter(backend)
  .stack.filter(({ path }) => typeof path === 'string' && !isOutsideContract(path))
  .flatMap(({ path, methods }) =>
    methods.filter(method => method !== 'HEAD').map(method => ({ method, path: String(path) })),
  )
const contract = Object.values(contractDocument.endpoints)
const filled = (path: string): string =>
  path.replaceAll(/\/:[A-Za-z]+/g, '/mk_abcdefghijklmnopqrstuv')

t.test('every route that is served is in the contract', async t => {
  for (const { method, path } of served) {
    t.ok(
      contract.some(known => known.method === method && known.path === path),
      `${method} ${path}`,
    )
  }
})

t.test('401: every route but the open ones wants a key', async t => {
  for (const { method, path } of served) {
    const { auth } = contract.find(known => known.method === method && known.path === path)!
    const open = auth.length === 0
    const error = auth.includes('memory-key') ? 'No Memory Key in the request' : /admin credential/
    const { status, body, headers } = await anonymous.send(method, filled(path))
    const unknown = path.includes('/:') ? 404 : 200
    t.equal(status, open ? unknown : 401, `${method} ${path}`)
    if (!open) {
      t.match(errorMessage(body), error)
      t.match(body.hint, /Memory-Key|X-Admin-Key/)
      t.equal(headers.get('www-authenticate'), 'Bearer')
    }
  }
})

t.test('200: GET / introduces the service and its endpoints', async t => {
  const { body } = await anonymous.get('/')
  t.match(body, { name: 'Memory Vault', version: '2.0.0', status: 'ok' })
  t.same(
    Object.keys(body.endpoints).sort(),
    served.map(({ method, path }) => `${method} ${path}`).sort(),
  )
  t.ok(Object.values(body.endpoints).every(summary => String(summary).length > 10))
})

t.test('200: GET /health', async t => {
  const before = Date.now()
  const { body } = await anonymous.get('/health')
  t.equal(body.status, 'ok')
  const at = Date.parse(body.timestamp)
  t.ok(at >= before && at <= Date.now(), body.timestamp)
})
