import t from 'tap'
import { buildDocument } from '#scripts/contract/build-document.ts'

const page = ({
  heading = 'POST /v1/notes',
  auth = 'Memory Key, may read',
  rows = '',
} = {}) => `# A page

## RequestHeaders (open)

| Field | Type | Required | Notes |
|---|---|---|---|
| \`X-Session-ID\` | \`string\` | no | |

## AnswerHeaders (open)

| Field | Type | Required | Notes |
|---|---|---|---|
| \`X-Memory-Ignored-Fields\` | \`string\` | no | |
| \`X-Memory-Clamped\` | \`string\` | no | |

## ${heading}

Finds notes.

- Operation: find
- Effect: reads
- Auth: ${auth}

### Body

| Field | Type | Required | Notes |
|---|---|---|---|
| \`query\` | \`string 1..100\` | yes | |
${rows}
### 200

| Field | Type | Required | Notes |
|---|---|---|---|
| \`id\` (ours) | \`uuid\` | yes | |
`
const built = (options: Parameters<typeof page>[0]) =>
  buildDocument([{ file: 'page.md', markdown: page(options) }])

t.test('clamped: a bound that is taken, and the header that tells', async t => {
  const { $defs, endpoints } = built({ rows: '| `limit` | `integer 1..9 clamped = 5` | no | |\n' })
  const limit = { type: 'integer', minimum: 1, maximum: 9, 'x-clamped': true, default: 5 }
  t.match($defs.FindBody, { properties: { limit } })
  t.same(endpoints.find?.sends, ['x-memory-ignored-fields', 'x-memory-clamped'])
  t.same(built({}).endpoints.find?.sends, ['x-memory-ignored-fields'])
  t.throws(
    () => built({ rows: '| `limit` | `integer clamped` | no | |\n' }),
    /needs an upper bound/,
  )
})

t.test('else nothing: the right is named, and that its lack is no 403', async t => {
  const { find } = built({ auth: 'Memory Key, may read, else nothing' }).endpoints
  t.match(find, { needs: ['read'], quiet: true })
  t.notOk('quiet' in built({}).endpoints.find!)
})

t.test('ours: of an endpoint, and of a field', async t => {
  const { $defs, endpoints } = built({ heading: 'POST /v1/notes (ours)' })
  t.match(endpoints.find, { ours: true, path: '/v1/notes' })
  t.match($defs.FindAnswer, { properties: { id: { 'x-contract': false } } })
  t.notOk('ours' in built({}).endpoints.find!)
})
