import t from 'tap'
import { parseMarkdown } from '#scripts/clients/import/front-matter.ts'

const fieldsOf = (...lines: string[]): Record<string, unknown> =>
  parseMarkdown(`---\n${lines.join('\n')}\n---\nbody`)!.fields

t.test('front matter as people and programs write it', async t => {
  t.same(
    fieldsOf(
      '# a comment',
      'type: BigQuery Table   # of sales',
      'title: "Orders: \\"all\\""',
      "single: 'it''s'",
      'url: https://example.com/a?b=c#d',
      'time: 2026-05-28T14:30:00Z',
      'count: 5000',
      'share: -0.5',
      'guild: 1234567890123456789',
      'yes: true',
      'none:',
      'nothing: ~',
      'tags: [sales, "a, b", 3]',
      'generated: { by: agent/1, at: 2026-05-28T14:30:00Z, why: {a: [b]} }',
      '"quoted name": 1',
    ),
    {
      type: 'BigQuery Table',
      title: 'Orders: "all"',
      single: "it's",
      url: 'https://example.com/a?b=c#d',
      time: '2026-05-28T14:30:00Z',
      guild: '1234567890123456789',
      count: 5000,
      share: -0.5,
      yes: true,
      none: null,
      nothing: null,
      tags: ['sales', 'a, b', 3],
      generated: { by: 'agent/1', at: '2026-05-28T14:30:00Z', why: { a: ['b'] } },
      'quoted name': 1,
    },
  )
  t.same(
    fieldsOf(
      'list:',
      '- one',
      '- two: 2',
      '  three: 3',
      'deep:',
      '  - id: a',
      '    in:',
      '      x: y',
      '',
      '  - [1, 2]',
      'literal: |',
      '  first',
      '    second',
      '',
      'folded: >-',
      '  one',
      '  two',
      'plain goes on: here',
      '  and there',
      'flow: [a,',
      '  b',
      ']',
    ),
    {
      list: ['one', { two: 2, three: 3 }],
      deep: [{ id: 'a', in: { x: 'y' } }, [1, 2]],
      literal: 'first\n  second',
      folded: 'one two',
      'plain goes on': 'here and there',
      flow: ['a', 'b'],
    },
  )
})

t.test('where it begins and ends', async t => {
  t.equal(parseMarkdown('# no front matter\n---\na: b\n---\n'), undefined)
  t.equal(parseMarkdown('---\na: b\n'), undefined, 'not closed')
  t.equal(parseMarkdown(''), undefined)
  t.same(parseMarkdown('---\n---\n'), { fields: {}, body: '' })
  t.same(parseMarkdown('\uFEFF---\r\na: b\r\n---\r\n\r\nbody\r\n---\r\n'), {
    fields: { a: 'b' },
    body: '\r\nbody\r\n---\r\n',
  })
  t.same(parseMarkdown('---\na: b\n---'), { fields: { a: 'b' }, body: '' })
})

t.test('what is none is a fault, soon, and no field of an object', async t => {
  for (const line of ['just words', 'a: [1, 2', 'a: {b}', 'a: "open', ' a: b', '- a', 'a: [1] 2'])
    t.throws(() => fieldsOf(line), SyntaxError, line)
  t.throws(() => fieldsOf(`a: ${'['.repeat(20_000)}`), SyntaxError)
  t.throws(
    () => fieldsOf(...Array.from({ length: 100 }, (_, n) => `${' '.repeat(n)}a:`)),
    SyntaxError,
  )
  const fields = fieldsOf('__proto__: {"x": 1}', 'toString: y')
  t.equal(Object.getPrototypeOf(fields), Object.prototype)
  t.equal(fields['x' as never], undefined)
})
