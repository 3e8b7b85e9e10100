import fc from 'fast-check'
import * as driver from 'mongodb'
import pg from 'pg'
import t from 'tap'
import { Refusal } from '#shared/core/errors.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
const key = await buildKey(backend)
let thrown: unknown
/** What a request meets once it has reached the application. */
const findKey = async (): Promise<never> => {
  throw thrown
}
const faulty = await startTestApi(t, { ...backend, findKey }, key)

/** Every class of error that the driver exports. */
const driverErrors = Object.entries(driver as unknown as Record<string, unknown>).filter(
  (entry): entry is [string, typeof Error] =>
    typeof entry[1] === 'function' && entry[1].prototype instanceof Error,
)

const codes = fc.oneof(
  fc.integer(),
  fc.constantFrom(10107, 11600, 11602, 91, 189, 13435, 13, 11000, undefined, null, 'ECONNREFUSED'),
  fc.string(),
)
const fields = fc.record(
  { code: codes, status: fc.constantFrom(400, 413, 404, '400'), type: fc.string() },
  { requiredKeys: [] },
)

/** An instance without its constructor: those of the driver are not for others to call. */
const anyDriverError = fc
  .tuple(fc.constantFrom(...driverErrors), fields, fc.string())
  .map(([[, Class], extra, message]) => {
    const error = Object.create(Class.prototype) as Error
    const own = { message, stack: '', errorLabelSet: new Set(['RetryableWriteError']), ...extra }
    for (const [name, value] of Object.entries(own)) {
      Object.defineProperty(error, name, { value, configurable: true })
    }
    return error
  })
const anyError = fc.oneof(
  anyDriverError,
  fields.map(extra =>
    Object.assign(new driver.MongoServerError({ message: 'm', ...extra }), extra),
  ),
  fields.map(extra => Object.assign(new pg.DatabaseError('m', 1, 'error'), extra)),
  fc
    .constantFrom('AbortError', 'TimeoutError', 'DataCloneError', 'SyntaxError')
    .map(name => new DOMException('m', name)),
  fields.map(extra => new AggregateError([Object.assign(new Error('m'), extra), null], 'm')),
  fields.map(extra => Object.assign(new TypeError('m'), extra)),
  fc.anything(),
)

t.test(
  'whatever is thrown leaves as JSON with an error, and as a fault of the service',
  async t => {
    t.ok(driverErrors.length > 30, `${driverErrors.length} classes of the driver`)
    await fc.assert(
      fc.asyncProperty(anyError, async error => {
        thrown = error
        const answer = await fetch(`${faulty.base}/v1/memory/stats`, {
          headers: { authorization: `Bearer ${key}` },
        })
        const body = (await answer.json()) as { error?: unknown; hint?: unknown }
        return (
          answer.status >= 500 &&
          typeof body.error === 'string' &&
          Object.keys(body).every(name => name === 'error' || name === 'hint') &&
          (answer.status !== 503 || /^\d+$/.test(answer.headers.get('retry-after') ?? ''))
        )
      }),
      { numRuns: 300 },
    )
  },
)

t.test('each class of the driver by itself', async t => {
  for (const [name, Class] of driverErrors) {
    for (const code of [10107, 13, undefined]) {
      thrown = Object.defineProperties(Object.create(Class.prototype) as Error, {
        message: { value: name },
        code: { value: code },
        errorLabelSet: { value: new Set() },
      })
      const { status, body } = await faulty.get('/v1/memory/stats')
      t.ok(status === 500 || status === 503, `${name} ${code}: ${status}`)
      t.type(body.error, 'string')
    }
  }
})

t.test('why a store is out of reach is in the log, and not in the answer', async t => {
  const logged: unknown[] = []
  const log = Object.assign(Object.create(backend.log), {
    warn: (entry: unknown) => logged.push(entry),
  })
  const client = await startTestApi(t, { ...backend, log, findKey }, key)
  const cause = new driver.MongoServerError({ message: 'stepped down', code: 189 })
  thrown = new Refusal('unavailable', 'The memory store is out of reach', 'Try again', cause)
  const { status, body } = await client.get('/v1/memory/stats')
  t.equal(status, 503)
  t.same(body, { error: 'The memory store is out of reach', hint: 'Try again' })
  t.match(logged, [{ err: { cause: { code: 189 } }, request: String }])
})
