import t from 'tap'
import { parseMarkdown } from '#scripts/clients/import/formats/okf.ts'

const fieldsOf = (...lines: string[]): Readonly<Record<string, unknown>> =>
  parseMarkdown(`---\n${lines.join('\n')}\n---\nbody`)!.fields

t.test('front matter: texts, numbers with all their digits, lists, JSON', async t => {
  t.same(
    fieldsOf(
      'type: BigQuery Table   # of sales',
      'title: "Orders: \\"all\\""',
      'time: 2026-05-28T14:30:00Z',
      'share: -0.5',
      'guild: 1234567890123456789',
      'yes: true',
      'none:',
      'tags: [sales, "a, b", 3]',
      'tags: [last]',
      'generated: { by: agent/1, why: {"a": [-9007199254740993]} }',
      'deep:',
      '  - id: a',
      'literal: |-',
      '  first',
      '    second',
    ),
    {
      type: 'BigQuery Table',
      title: 'Orders: "all"',
      time: '2026-05-28T14:30:00Z',
      share: -0.5,
      guild: '1234567890123456789',
      yes: true,
      none: null,
      tags: ['last'],
      generated: { by: 'agent/1', why: { a: ['-9007199254740993'] } },
      deep: [{ id: 'a' }],
      literal: 'first\n  second',
    },
  )
})

t.test('where front matter begins and ends', async t => {
  t.equal(parseMarkdown('# no front matter\n---\na: b\n---\n'), undefined)
  t.equal(parseMarkdown('---\na: b\n'), undefined, 'not closed')
  t.equal(parseMarkdown(''), undefined)
  t.same(parseMarkdown('---\n---\n'), { fields: {}, body: '' })
  t.same(parseMarkdown('\uFEFF---\r\na: b\r\n---\r\n\r\nbody\r\n---\r\n'), {
    fields: { a: 'b' },
    body: '\r\nbody\r\n---\r\n',
  })
})

t.test('what is no front matter is a fault, soon, and no field of an object', async t => {
  const bomb = Array.from(
    { length: 10 },
    (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(9)}]`,
  )
  bomb.unshift('a0: &a0 [x]')
  for (const lines of [
    ['words'],
    ['a: [1, 2'],
    ['- a'],
    ['a: [1] 2'],
    [`a: ${'['.repeat(20_000)}`],
    bomb,
  ])
    t.throws(() => fieldsOf(...lines), lines[0]!.slice(0, 20))
  const fields = fieldsOf('__proto__: {"x": 1}', 'toString: y')
  t.equal(Object.getPrototypeOf(fields), Object.prototype)
  t.equal(fields['x'], undefined)
})
