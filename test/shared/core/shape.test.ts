import t from 'tap'
import fc from 'fast-check'
import { Refusal } from '#shared/core/errors.ts'
import { shape, type Schema } from '#shared/core/shape.ts'
import { parseStart } from '#shared/core/dates.ts'

/** What a shape says about a value: its refusal, or nothing. */
function refusalOf(schema: Schema, value: unknown, coerce = false): Refusal | undefined {
  try {
    shape(schema, { name: 'the body', coerce }).check(value)
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
})

t.test('a message names the field, the bound and what came', async t => {
  const cases: [Schema, unknown, string][] = [
    [{ type: 'integer' }, 'five', 'field must be a whole number, not "five"'],
    [{ type: 'integer' }, 1.5, 'field must be a whole number, not 1.5'],
    [{ type: 'string' }, 5, 'field must be a string, not 5'],
    [{ type: 'boolean' }, 'true', 'field must be true or false, not "true"'],
    [{ type: 'array' }, {}, 'field must be a list, not an object'],
    [{ type: 'object' }, [], 'field must be an object, not a list'],
    [{ type: ['string', 'null'] }, true, 'field must be a string or null, not true'],
    [{ type: 'integer', maximum: 200 }, 201, 'field must be at most 200, not 201'],
    [{ type: 'integer', minimum: 1 }, 0, 'field must be at least 1, not 0'],
    [{ type: 'string', maxLength: 3 }, 'long', 'field must have at most 3 characters, not 4'],
    [{ type: 'string', minLength: 1 }, '', 'field must have at least 1 character, not 0'],
    [{ type: 'string', maxLength: 1 }, '😀😀', 'field must have at most 1 character, not 2'],
    [{ type: 'array', minItems: 1 }, [], 'field must have at least 1 item, not 0'],
    [{ type: 'array', maxItems: 1 }, [1, 2], 'field must have at most 1 item, not 2'],
    [
      { type: 'array', uniqueItems: true },
      [1, 2, 1],
      'field must not repeat an item: 0 and 2 are the same',
    ],
    [{ type: 'integer', enum: [1, 2, 3] }, 4, 'field must be one of 1, 2, 3, not 4'],
    [{ type: 'boolean', enum: [true] }, false, 'field must be true, not false'],
    [{ type: 'string', format: 'uuid' }, 'x', 'field must be a UUID, not "x"'],
    [{ type: 'string', format: 'email' }, 'x', 'field must be an email address, not "x"'],
    [
      { type: 'string', pattern: '^a$', 'x-says': 'must not hold anything but a' },
      'b',
      'field must not hold anything but a',
    ],
    [
      {
        anyOf: [
          { type: 'string', format: 'date' },
          { type: 'string', format: 'iso-date-time' },
        ],
      },
      'soon',
      'field must be a date such as 2026-11-20 or a date and time such as 2026-11-20T15:15:00Z, ' +
        'not "soon"',
    ],
  ]
  for (const [schema, value, message] of cases)
    t.match(refusalOf(object({ field: schema }), { field: value }), { reason: 'invalid', message })
})

t.test('a rule for one kind of value does not word the refusal of another', async t => {
  const field = { type: 'string', maxLength: 3, pattern: '^a*$', 'x-says': 'must be all a' }
  const said = (value: unknown) => refusalOf(object({ field }), { field: value })?.message
  t.equal(said(5), 'field must be a string, not 5')
  t.equal(said('aaaa'), 'field must have at most 3 characters, not 4')
  t.equal(said('b'), 'field must be all a')
})

t.test('where the fault is: nested fields, list items, the whole', async t => {
  const message = object({ role: { type: 'string' } }, { required: ['role'] })
  const schema = object({ messages: { type: 'array', items: message } }, { required: ['messages'] })
  t.equal(refusalOf(schema, {})?.message, 'messages is required')
  t.equal(refusalOf(schema, { messages: [{}] })?.message, 'messages[0].role is required')
  t.equal(
    refusalOf(schema, { messages: [{ role: 'user' }, { role: 1 }] })?.message,
    'messages[1].role must be a string, not 1',
  )
  t.equal(refusalOf(schema, null)?.message, 'the body must be an object, not null')
  t.equal(refusalOf(schema, [])?.message, 'the body must be an object, not a list')
})

t.test('a union is judged by the member that was meant', async t => {
  const anyOf = [object({ id: { type: 'integer' } }, { required: ['id'] }), { type: 'null' }]
  const said = (field: unknown) => refusalOf(object({ field: { anyOf } }), { field })?.message
  t.equal(said(null), undefined)
  t.equal(said({ id: 'x' }), 'field.id must be a whole number, not "x"')
  t.equal(said({}), 'field.id is required')
  t.equal(said({ id: 1, ie: 2 }), 'unknown field field.ie')
  t.equal(said(3), 'field must be an object or null, not 3')
  const $defs = { SessionId: { type: 'string' } }
  const named = object(
    { field: { anyOf: [{ $ref: '#/$defs/SessionId' }, { type: 'null' }] } },
    { $defs },
  )
  t.equal(refusalOf(named, { field: 5 })?.message, 'field must be a session id or null, not 5')
})

t.test('an unknown field: the hint names the nearest, or all', async t => {
  const schema = object({ session_id: {}, limit: {}, query: {} })

  t.test('a misspelt required field is named, with the name that was meant', async t => {
    const text = { type: 'string' }
    const row = object({ role: text, content: text }, { required: ['role', 'content'] })
    const schema = object(
      { query: text, limit: { type: 'integer' }, rows: { type: 'array', items: row } },
      { required: ['query', 'limit'] },
    )
    const said = (value: unknown) => {
      const { message, hint } = refusalOf(schema, value)!
      return [message, hint]
    }
    t.same(said({ qeury: 'x' }), ['unknown field qeury', 'did you mean query?'])
    t.same(said({ query: 'x', limt: 3 }), ['unknown field limt', 'did you mean limit?'])
    t.same(said({ query: 'x', limit: 3, rows: [{ rol: 'user' }] }), [
      'unknown field rows[0].rol',
      'did you mean role?',
    ])
    t.same(said({ query: 'x' }), ['limit is required', undefined])
    t.equal(
      refusalOf({ ...schema, additionalProperties: true }, { qeury: 'x' })?.message,
      'query is required',
    )
  })
  const hint = (name: string) => refusalOf(schema, { [name]: 1 })?.hint
  t.equal(refusalOf(schema, { sesion_id: 1 })?.message, 'unknown field sesion_id')
  t.equal(hint('sesion_id'), 'did you mean session_id?')
  t.equal(hint('sessionId'), 'did you mean session_id?')
  t.equal(hint('Limit'), 'did you mean limit?')
  t.equal(hint('colour'), 'known fields: session_id, limit, query')
  t.equal(hint(''), 'known fields: session_id, limit, query')
  t.equal(refusalOf(object({}), { x: 1 })?.hint, 'no fields are taken here')
  t.equal(refusalOf(schema, { 'a/b~c': 1 })?.message, 'unknown field a/b~c')
  t.match(refusalOf(schema, JSON.parse('{"__proto__": 1}')), { message: 'unknown field __proto__' })
})

t.test('no message repeats more than 64 characters of what came', async t => {
  const schema = object({
    choice: { type: 'string', enum: ['a'] },
    number: { type: 'number' },
    id: { type: 'string', format: 'uuid' },
    list: { type: 'array', items: { type: 'string' } },
    short: { type: 'string', maxLength: 2 },
  })
  const field = fc.constantFrom('choice', 'number', 'id', 'list', 'short', 'unknown')
  const long = fc.string({ minLength: 65, maxLength: 500 })
  const quiet = fc.property(field, long, (name, text) => {
    const refusal = refusalOf(schema, name === 'unknown' ? { [text]: 1 } : { [name]: text })
    const said = `${refusal?.message} ${refusal?.hint ?? ''}`
    return refusal !== undefined && said.length < 300 && !said.includes(text.slice(0, 65))
  })
  t.doesNotThrow(() => fc.assert(quiet))
})

t.test('text is read as numbers and booleans where it has to be', async t => {
  const schema = object({
    limit: { type: 'integer', minimum: 1, maximum: 200, default: 50 },
    reset: { type: 'boolean' },
    share: { type: 'number' },
    name: { type: 'string' },
  })
  const query = shape(schema, { coerce: true })
  t.same(query.check({ limit: '5', reset: 'true', share: '-0.25', name: '7' }), {
    limit: 5,
    reset: true,
    share: -0.25,
    name: '7',
  })
  t.same(query.check({}), { limit: 50 })
  t.same(query.check(Object.create(null)), { limit: 50 })

  const sent = { limit: '5' }
  query.check(sent)
  t.same(sent, { limit: '5' }, 'what was sent stays as it was')

  for (const limit of ['', 'x', '1.5', '0', '201', 'Infinity', '0x10', ' 5', '1e2', ['1', '2']])
    t.equal(refusalOf(schema, { limit }, true)?.reason, 'invalid', JSON.stringify(limit))
  t.equal(
    refusalOf(schema, { share: 'Infinity' }, true)?.message,
    'share must be a plain number, not "Infinity"',
  )
  t.same(query.check({ reset: '1', name: '1' }), { limit: 50, reset: true, name: '1' })
  t.same(query.check({ reset: '0', name: '0' }), { limit: 50, reset: false, name: '0' })
  for (const reset of ['', '2', 'yes', '01', 'TRUE', ['1', '1']])
    t.equal(refusalOf(schema, { reset }, true)?.reason, 'invalid', JSON.stringify(reset))
})

t.test('a body is taken as it is: no text becomes a number', async t => {
  const schema = object({ limit: { type: 'integer', default: 50 } })
  t.equal(refusalOf(schema, { limit: '5' })?.reason, 'invalid')
  t.same(shape(schema).check({}), { limit: 50 })
})

t.test('every time that passes is the time that was written', async t => {
  const times = shape({ type: 'string', format: 'iso-date-time' })
  const passes = (time: string) => {
    try {
      times.check(time)
      return true
    } catch {
      return false
    }
  }
  const readableTimes = [
    '2026-11-20T15:15:00Z',
    '2026-11-20T15:15:00',
    '2026-11-20 15:15:00+02:00',
    '2026-11-20T15:15Z',
    '2026-11-20T15:15',
    '2026-11-20t15:15-0930',
    '2026-11-20 15:15:00+02',
    '2026-11-20T24:00:00Z',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999Z',
  ]
  for (const time of readableTimes) t.ok(passes(time), time)
  const others = [
    '2016-12-31T23:59:60Z',
    '2026-02-30T00:00:00Z',
    '2026-11-20',
    'now',
    '',
    '2026-11-20T15Z',
    '2026-11-20T15:1Z',
    '2026-11-20T15:15:Z',
    '2026-11-20T15:15.5Z',
    '9999-12-31T23:59:00-01:00',
    '0000-01-01T00:00:00+01:00',
  ]
  for (const time of others) t.notOk(passes(time), time)
  const date = fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })
  const zones = { '': 0, Z: 0, z: 0, '+02': 120, '+0200': 120, '-09:30': -570, ' -08': -480 }
  const zone = fc.constantFrom(
    ...Object.entries(zones),
    ['+24:00', NaN] as const,
    ['.5Z', 0] as const,
  )
  const separator = fc.constantFrom('T', 't', ' ', '_')
  const readable = fc.property(date, separator, zone, (at, between, [offset, minutes]) => {
    const time = at.toISOString().slice(0, 19).replace('T', between) + offset
    if (between === '_' || Number.isNaN(minutes)) return !passes(time)
    const second = Math.floor(at.getTime() / 1000) * 1000
    const expected = second - minutes * 60_000 + (offset === '.5Z' ? 500 : 0)
    return passes(time) && parseStart(time) === expected
  })
  t.doesNotThrow(() => fc.assert(readable))
})

t.test('a UUID is its usual form and no other', async t => {
  const id = '0197a0c4-6a57-7c3e-9d0e-2f6a0d1b3c4d'
  const schema = { type: 'string', format: 'uuid' }
  t.equal(shape(schema).check(id), id)
  for (const other of [`urn:uuid:${id}`, `{${id}}`, id.replaceAll('-', ''), `${id}\n`])
    t.equal(refusalOf(schema, other)?.reason, 'invalid', other)
})

t.test('references lead into a document', async t => {
  const document = {
    $id: 'urn:test:references',
    $defs: {
      Tier: { type: 'integer', enum: [1, 2, 3] },
      Question: object({ tiers: { type: 'array', items: { $ref: '#/$defs/Tier' } } }),
    },
  }
  const question = shape({ $ref: 'urn:test:references#/$defs/Question' }, { document })
  t.same(question.check({ tiers: [1, 3] }), { tiers: [1, 3] })
  t.throws(() => question.check({ tiers: [4] }), {
    reason: 'invalid',
    message: 'tiers[0] must be one of 1, 2, 3, not 4',
  })
})

t.test('a schema with an unknown keyword is our own fault, not a refusal', async t => {
  const wrong = shape({ type: 'string', maxLenght: 3 })
  t.throws(() => wrong.check('x'), /unknown keyword/)
})
