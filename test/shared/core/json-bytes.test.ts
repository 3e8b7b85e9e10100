import t from 'tap'
import { insertJsonBytes, JsonBytes, toLargeJson } from '#shared/core/canonical-json.ts'

const long = 'My "cat" is called Ada 😀\n'.repeat(20_000)

t.test('a large value is written before and put in its place; a small one stays', async t => {
  const small = [{ text: 'one' }]
  t.equal(await toLargeJson(small, 3), small)
  const first = await toLargeJson([{ text: long, at: 1 }, { text: 'two' }], long.length)
  const second = await toLargeJson([{ text: long.slice(1) }], long.length)
  if (!(first instanceof JsonBytes && second instanceof JsonBytes)) return t.fail('not written')
  const jobs = [
    { id: 'a', data: { vault: 'v', memories: first, model: 'm' } },
    { id: 'b', data: { memories: small } },
    { id: 'c', data: { memories: second } },
  ]
  const json = insertJsonBytes(JSON.stringify(jobs), [first, second])
  t.ok(json instanceof Buffer)
  t.same(JSON.parse(json.toString()), [
    {
      id: 'a',
      data: { vault: 'v', memories: [{ text: long, at: 1 }, { text: 'two' }], model: 'm' },
    },
    { id: 'b', data: { memories: small } },
    { id: 'c', data: { memories: [{ text: long.slice(1) }] } },
  ])
  t.throws(() => insertJsonBytes(JSON.stringify(jobs), [second, first]), /order/)
  t.equal(insertJsonBytes('{"a":1}', []), '{"a":1}')
})
