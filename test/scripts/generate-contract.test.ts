import { spawnSync } from 'node:child_process'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildDocument } from '#scripts/contract/build-document.ts'
import { generateContract, staleFiles } from '#scripts/generate-contract.ts'

/** A small page with one endpoint, into which a test puts its own rows and lines. */
function page({
  fields = '| `query` | `string 1..100` | yes | |',
  facts = '',
  after = '',
  body = '### Body',
} = {}): string {
  return `# A page

## Tier

- Is: \`1 | 2 | 3\`

## Note

| Field | Type | Required | Notes |
|---|---|---|---|
| \`text\` | \`string\` | yes | what it says |
| \`tier\` | \`Tier\` | no | |

## RequestHeaders (open)

| Field | Type | Required | Notes |
|---|---|---|---|
| \`X-Session-ID\` | \`string <= 256\` | no | |
| \`Idempotency-Key\` | \`string\` | no | |

## PathParameters

| Field | Type | Required | Notes |
|---|---|---|---|
| \`id\` | \`uuid\` | yes | |

## POST /v1/notes

Finds notes. Says more.

- Operation: find
- Effect: reads
- Auth: Memory Key, may read
- Takes: X-Session-ID
${facts}
${body}

| Field | Type | Required | Notes |
|---|---|---|---|
${fields}

### 200

| Field | Type | Required | Notes |
|---|---|---|---|
| \`notes\` | \`Note[]\` | yes | |
${after}`
}

const documentOfPage = (markdown: string) => buildDocument([{ file: 'page.md', markdown }])

/** The property schema a cell becomes. */
function schemaOfCell(cell: string) {
  const fields = `| \`field\` | \`${cell.replaceAll('|', '\\|')}\` | no | |`
  const body = documentOfPage(page({ fields })).$defs.FindBody!
  return (body.properties as Record<string, unknown>).field
}

t.test('a type cell becomes the schema it says', async t => {
  const cells: [string, object][] = [
    ['string', { type: 'string' }],
    ['string 1..32000', { type: 'string', minLength: 1, maxLength: 32000 }],
    ['string <= 256', { type: 'string', maxLength: 256 }],
    ['string >= 1', { type: 'string', minLength: 1 }],
    ['integer 1..10', { type: 'integer', minimum: 1, maximum: 10 }],
    ['number 0..1', { type: 'number', minimum: 0, maximum: 1 }],
    ['number -2..2', { type: 'number', minimum: -2, maximum: 2 }],
    ['number 0.5..1.5', { type: 'number', minimum: 0.5, maximum: 1.5 }],
    ['uuid', { type: 'string', format: 'uuid' }],
    ['date-time', { type: 'string', format: 'date-time' }],
    [
      'date | date-time',
      {
        anyOf: [
          { type: 'string', format: 'date' },
          { type: 'string', format: 'date-time' },
        ],
      },
    ],
    ['1 | 2', { type: 'integer', enum: [1, 2] }],
    ["'low' | 'high'", { type: 'string', enum: ['low', 'high'] }],
    ["'low' | null", { type: ['string', 'null'], enum: ['low', null] }],
    ['true', { type: 'boolean', enum: [true] }],
    ['boolean', { type: 'boolean' }],
    ['string | null', { type: ['string', 'null'] }],
    ['number 0..2 | null', { type: ['number', 'null'], minimum: 0, maximum: 2 }],
    ['Note | null', { anyOf: [{ $ref: '#/$defs/Note' }, { type: 'null' }] }],
    ['Note[]', { type: 'array', items: { $ref: '#/$defs/Note' } }],
    [
      'Tier[] 1..3 unique',
      {
        type: 'array',
        items: { $ref: '#/$defs/Tier' },
        minItems: 1,
        maxItems: 3,
        uniqueItems: true,
      },
    ],
    [
      '(string <= 64)[] <= 5',
      { type: 'array', items: { type: 'string', maxLength: 64 }, maxItems: 5 },
    ],
    ['map of integer', { type: 'object', additionalProperties: { type: 'integer' } }],
    ['map of Note', { type: 'object', additionalProperties: { $ref: '#/$defs/Note' } }],
    ['object', { type: 'object' }],
    ['any', {}],
    ['integer 1..200 = 50', { type: 'integer', minimum: 1, maximum: 200, default: 50 }],
    ["'a' | 'b' = 'b'", { type: 'string', enum: ['a', 'b'], default: 'b' }],
    ['boolean = false', { type: 'boolean', default: false }],
    ['string[] = []', { type: 'array', items: { type: 'string' }, default: [] }],
  ]
  for (const [cell, schema] of cells) t.strictSame(schemaOfCell(cell), schema, cell)
})

t.test('a type cell that says nothing we know is refused', async t => {
  const cells: [string, RegExp][] = [
    ['integr', /unknown type integr/],
    ['Notes', /unknown type Notes/],
    ['string[', /cannot read \[/],
    ['string 5', /a range is written as/],
    ['string <=', /a number is expected/],
    ['integer 10..1', /holds nothing/],
    ['uuid 1..5', /uuid takes no range/],
    ['boolean <= 3', /boolean takes no range/],
    ['string string', /string is not expected here/],
    ['string |', /a type is missing/],
    ['(string', /a \) is missing/],
    ['map string', /map is written as/],
    ['integer 1..10 = 11', /the default must be at most 10, not 11/],
    ["'a' = 'b'", /the default must be a, not "b"/],
    ['integer =', /nothing is no default/],
    ['Tier = 1', /not beside a resource/],
    ['string; drop', /cannot read ;/],
  ]
  for (const [cell, problem] of cells) t.throws(() => schemaOfCell(cell), problem, cell)
})

t.test('a refusal names file, heading, part, row and column', async t => {
  const fields = '| `query` | `string` | yes | |\n| `limit` | `integr 1..5` | no | |'
  t.throws(() => documentOfPage(page({ fields })), {
    message:
      'page.md, "POST /v1/notes", "Body", row 2 (`limit`), column Type: ' +
      'cannot read "integr 1..5": unknown type integr',
  })
})

t.test('a row that is not of the grammar is refused', async t => {
  const rows: [string, RegExp][] = [
    ['| query | `string` | yes | |', /column Field: "query" is not one code span/],
    ['| `query` | string | yes | |', /column Type: "string" is not one code span/],
    ['| `query` | `string` or `null` | yes | |', /is not one code span/],
    ['| `query` | `string` | maybe | |', /column Required: is yes or no, not "maybe"/],
    ['| `query` | `string` | | |', /column Required/],
    ["| `query` | `'a' | 'b'` | yes | |", /has 5 cells instead of 4; write \| in a type as/],
    ['| `query` | `string` | yes |', /has 3 cells instead of 4/],
    ['| `qu ery` | `string` | yes | |', /qu ery is no field name/],
    ['| `query` | `string` | yes | |\n| `query` | `string` | no | |', /described twice/],
    ["| `query` | `string = 'x'` | yes | |", /a field with a default is not required/],
    [
      '| `a` | `string` | yes | |\n| `a.b` | `string` | yes | |',
      /a has fields and so is an object/,
    ],
    ['| `...` | `Tier` | yes | |', /has no fields of its own/],
    ['| `...` | `Nothing` | yes | |', /has no fields of its own/],
  ]
  for (const [fields, problem] of rows) {
    t.throws(() => documentOfPage(page({ fields })), problem, fields)
  }
})

t.test('a chapter that is not of the grammar is refused', async t => {
  const endpoint = (lines: string) =>
    `\n## GET /v1/other\n\nReads.\n\n${lines}\n\n### 200: \`Note\`\n`
  const post = (lines: string) => endpoint(lines).replace('GET', 'POST')
  const pages: [Parameters<typeof page>[0], RegExp][] = [
    [{ body: '### Bodies' }, /a part is Body, Query or a status/],
    [{ body: '### Body (shut)' }, /\(shut\) is neither open nor a media type/],
    [{ after: '\n### 404: `Note`' }, /a part is Body, Query or a status/],
    [{ after: '\n### 201: `Nothing`' }, /unknown type Nothing/],
    [{ after: '\n### 201 (open): `Note`' }, /whether Note is open/],
    [{ after: '\n### 201' }, /has no table/],
    [{ after: '\n### 200: `Note`' }, /a second 200/],
    [{ after: '\n#### Deeper' }, /headings are #, ## and/],
    [{ after: '\n## Nobody\n\n- Is: `string`' }, /Nobody is never used/],
    [{ after: '\n## not a name\n' }, /neither an endpoint nor a resource/],
    [{ after: '\n## Note\n\n- Is: `string`' }, /the name Note is taken/],
    [{ after: endpoint('- Auth: none') }, /needs an Operation/],
    [{ after: endpoint('- Operation: find\n- Auth: none') }, /find is taken/],
    [{ after: endpoint('- Operation: other') }, /Auth is none, Memory Key/],
    [{ after: endpoint('- Operation: other\n- Auth: everybody') }, /Auth is none, Memory Key/],
    [{ after: endpoint('- Operation: other\n- Auth: Memory Key, may fly') }, /Auth is none/],
    [{ after: endpoint('- Operation: other\n- Auth: admin, may read') }, /Auth is none/],
    [{ after: endpoint('- Operation: other\n- Auth: none\n- Cost: 1') }, /cannot read "Cost: 1"/],
    [{ after: endpoint('- Operation: other\n- Auth: none\n- Auth: none') }, /Auth is said twice/],
    [
      { after: endpoint('- Operation: other\n- Auth: none\n- Errors: 99') },
      /99 is no error status/,
    ],
    [{ after: endpoint('- Operation: other\n- Auth: none\n- Takes: X-No') }, /x-no is not in/],
    [
      { after: endpoint('- Operation: other\n- Auth: none\n- Reads: at most 2 MiB') },
      /needs a Body/,
    ],
    [
      { after: endpoint('- Operation: other\n- Auth: none').replace('other', ':nobody') },
      /nobody is/,
    ],
    [{ after: endpoint('- Operation: other\n- Effect: reads\n- Auth: none') }, /has no Effect/],
    [{ after: post('- Operation: other\n- Auth: none') }, /needs an Effect: reads, stores/],
    [{ after: post('- Operation: other\n- Effect: writes\n- Auth: none') }, /needs an Effect/],
    [
      {
        after: post('- Operation: other\n- Effect: stores\n- Auth: none').replace('POST', 'DELETE'),
      },
      /a DELETE changes something/,
    ],
    [{ facts: '- Reads: everything\n' }, /Reads is media types, then/],
    [{ after: '\n```\ncode\n```\n' }, /a code has no meaning here/],
    [{ after: '\n| `more` | `string` | yes | |\n' }, /a table that Markdown does not read as one/],
  ]
  for (const [changes, problem] of pages) {
    t.throws(() => documentOfPage(page(changes)), problem, JSON.stringify(changes))
  }
  t.throws(
    () => documentOfPage(`# Title\n\n| a |\n|---|\n| b |\n\n${page()}`),
    /before the first ##/,
  )
  t.throws(
    () => documentOfPage(page().replaceAll('| Notes |', '| Remarks |')),
    /columns are Field, Type, Required, Notes, not Field, Type, Required, Remarks/,
  )
})

t.test('dotted rows become an object, required where one of its fields is', async t => {
  const fields = [
    '| `metrics.total_ms` | `number` | yes | how long |',
    '| `metrics.rows` | `integer` | no | |',
    '| `more` | `object` | no | further things |',
    '| `more.depth` | `integer` | no | |',
  ].join('\n')
  const { FindBody } = documentOfPage(page({ fields })).$defs
  t.match(FindBody, {
    required: ['metrics'],
    additionalProperties: false,
    properties: {
      metrics: {
        type: 'object',
        required: ['total_ms'],
        additionalProperties: false,
        properties: { total_ms: { type: 'number', description: 'how long' } },
      },
      more: { type: 'object', description: 'further things' },
    },
  })
})

t.test('an open table lets other fields through, a closed one does not', async t => {
  const open = documentOfPage(page({ body: '### Body (open)' })).$defs.FindBody
  t.equal(open?.additionalProperties, true)
  t.equal(documentOfPage(page()).$defs.FindBody?.additionalProperties, false)
})

t.test('a row ... takes over the fields of a resource', async t => {
  const fields = '| `query` | `string` | yes | |\n| `...` | `Note` | yes | |'
  const { FindBody } = documentOfPage(page({ fields })).$defs
  t.same(Object.keys(FindBody?.properties as object), ['query', 'text', 'tier'])
  t.same(FindBody?.required, ['query', 'text'])
})

t.test('an endpoint says who may ask, what it reads and how it refuses', async t => {
  const after = `
## PUT /v1/notes/:id

Writes a note.

- Operation: write
- Effect: changes
- Auth: Memory Key or admin, may write and read
- Takes: Idempotency-Key
- Reads: application/x-ndjson, text/plain, at most 3 MiB
- Errors: 404

### Body: \`Note\`

### 200: \`Note\`

### 202 (text/plain): \`string\`
`
  const { endpoints, $defs } = documentOfPage(page({ after }))
  t.strictSame(endpoints.write, {
    operation: 'write',
    method: 'PUT',
    path: '/v1/notes/:id',
    summary: 'Writes a note.',
    description: 'Writes a note.',
    effect: 'changes',
    auth: ['memory-key', 'admin'],
    needs: ['write', 'read'],
    params: { $ref: '#/$defs/WriteParams' },
    headers: { $ref: '#/$defs/WriteHeaders' },
    body: {
      media: ['application/x-ndjson', 'text/plain'],
      lines: true,
      bytesMax: 3 * 1024 * 1024,
      required: true,
      schema: { $ref: '#/$defs/Note' },
    },
    answers: {
      200: { media: ['application/json'], lines: false, schema: { $ref: '#/$defs/Note' } },
      202: { media: ['text/plain'], lines: false, schema: { $ref: '#/$defs/WriteAnswer202' } },
    },
    sends: [],
    errors: [400, 401, 403, 404, 409, 413, 415, 429, 500, 503],
  })
  t.match($defs.WriteParams, { required: ['id'], additionalProperties: false })
  t.equal(endpoints.find?.summary, 'Finds notes.')
  t.same(endpoints.find?.errors, [400, 401, 403, 413, 415, 429, 500, 503])
})

t.test('the same tables give the same files, however often', async t => {
  const folder = t.testdir({ 'page.md': page() })
  t.same(await generateContract(folder), await generateContract(folder))
})

t.test('types: what a check has filled in is always there', async t => {
  const fields = '| `query` | `string` | yes | |\n| `limit` | `integer 1..9 = 3` | no | |'
  const folder = t.testdir({ 'page.md': page({ fields }) })
  const types = (await generateContract(folder)).get('types.ts')!
  t.match(types, 'export interface FindBody {\n  query: string\n  limit: number\n}')
  t.match(types, 'export type Tier = 1 | 2 | 3')
  t.match(types, "  'POST /v1/notes': {")
  t.match(types, "    headers: Pick<RequestHeaders, 'x-session-id'>")
  t.match(types, '    answers: { 200: FindAnswer }')
})

t.test('the committed files are what the tables say', async t => {
  const folder = join(import.meta.dirname, '../../api/contract')
  t.same(
    staleFiles(join(folder, 'generated'), await generateContract(folder)),
    [],
    'run `npm run contract`',
  )
})

t.test('the command', async t => {
  const folder = t.testdir({ 'page.md': page() })
  const run = (...options: string[]) =>
    spawnSync(
      process.execPath,
      [join(import.meta.dirname, '../../scripts/generate-contract.ts'), ...options],
      { encoding: 'utf8', timeout: 60_000 },
    )

  t.match(run('--check', '--folder', folder), {
    status: 1,
    stderr: 'schemas.json, types.ts, shapes.ts differ from the tables',
  })
  t.match(run('--folder', folder), { status: 0, stdout: 'wrote schemas.json, types.ts, shapes.ts' })
  t.match(run('--check', '--folder', folder), { status: 0, stdout: 'is up to date' })

  const types = join(folder, 'generated/types.ts')
  appendFileSync(types, '// changed by hand\n')
  t.match(run('--check', '--folder', folder), { status: 1, stderr: /^types\.ts differ/ })
  t.match(readFileSync(types, 'utf8'), 'changed by hand', 'check writes nothing')

  writeFileSync(join(folder, 'page.md'), page({ fields: '| `query` | `strin` | yes | |' }))
  t.match(run('--check', '--folder', folder), { status: 1, stderr: /^page\.md, "POST .*strin\n$/ })
  t.match(run('--help'), { status: 0, stdout: '--check' })
  t.match(run('--nonsense'), { status: 2, stderr: '--nonsense' })
})
