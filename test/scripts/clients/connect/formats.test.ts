import fc from 'fast-check'
import t from 'tap'
import { takeOut } from '#scripts/clients/connect/diff.ts'
import { dotenv } from '#scripts/clients/connect/formats/dotenv.ts'
import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'
import { toml } from '#scripts/clients/connect/formats/toml.ts'

t.test('JSON: a value is added and taken out without touching the rest', async t => {
  const commented = `\uFEFF// mine
{
    "theme": "dark", // not light
    /* servers */
    "servers": { // mine
        // the first
        "other": {"url": "https://x/, }//", "id": 12345678901234567890}, // the old one
    },
    "list": [1, 2,],
}
`
  const at = ['servers', 'memory']
  const grown = jsonc.set(commented, at, { url: 'u', headers: { A: 'b' } })
  t.equal(
    grown,
    commented.replace(
      '{ // mine\n',
      '{ // mine\n        "memory": {\n            "url": "u",\n            "headers": {\n                "A": "b"\n            }\n        },\n',
    ),
  )
  t.same(jsonc.get(grown, ['servers', 'memory', 'headers']), { A: 'b' })
  t.equal(jsonc.putBack(grown, at, commented), commented)
  const changed = jsonc.set(grown, ['theme'], 'light')
  t.equal(jsonc.putBack(changed, ['theme'], commented), grown)
})

t.test('JSON: short, empty and missing objects', async t => {
  const at = ['a', 'b']
  for (const text of [
    '{}',
    '{ }\n',
    '{"c":1}',
    '{ "c": 1 /* x */ }',
    '{ /* x */ "c": 1 }',
    '{\r\n\t"c": 1\r\n}\r\n',
    '{"a": {}}',
  ]) {
    const grown = jsonc.set(text, at, 'v')
    t.equal(jsonc.get(grown, at), 'v', grown)
    t.equal(jsonc.set(grown, at, 'v'), grown)
    t.notMatch(grown, /(?<!\r)\n.*\r\n/, 'one kind of line ends')
    const back = jsonc.putBack(grown, at, text)
    t.equal(back.replaceAll(/\s/g, ''), text.replaceAll(/\s/g, ''), back)
  }
  t.equal(jsonc.set('', at, 'v'), '{\n  "a": {\n    "b": "v"\n  }\n}\n')
  t.equal(jsonc.set('// nothing yet', ['a'], '1'), '// nothing yet\n{\n  "a": "1"\n}\n')
  for (const wrong of [
    '[1]',
    '{"a": 1}',
    '{"a" 1}',
    '{,}',
    '{"a": tru}',
    '{} {}',
    '{"a": "x',
    '{"a": {}, "a": {}}',
  ]) {
    t.throws(() => jsonc.set(wrong, at, '1'), FormatError, wrong)
  }
})

t.test('JSON: any object, written in any way, keeps everything else', async t => {
  const name = fc.constantFrom('a', 'b', 'c', 'd d', '"')
  const { object } = fc.letrec(tie => ({
    value: fc.oneof(fc.integer(), fc.string(), fc.array(fc.string()), tie('object')),
    object: fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  }))
  const path = fc.array(name, { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(object, path, fc.constantFrom(undefined, 2, 4, '\t'), (value, at, indent) => {
      const text = JSON.stringify(value, null, indent)
      const depth = at.findIndex(
        (_, index) => jsonc.get(text, at.slice(0, index + 1)) === undefined,
      )
      // A scalar on the way is a refusal, tried above.
      if (depth > 0 && Object(jsonc.get(text, at.slice(0, depth))).constructor !== Object) return
      const grown = jsonc.set(text, at, { new: true })
      t.same(jsonc.get(grown, at), { new: true })
      const back = jsonc.putBack(grown, at, text)
      t.same(JSON.parse(back), value)
      const emptied = /\{\s*\}/.test(text) || indent === undefined
      if (!emptied) t.equal(back, text, 'the same bytes')
    }),
    { numRuns: 500 },
  )
})

const config = `# mine
model = "gpt-5" # the large one

[mcp_servers.docs]
command = "x"
args = [
  "[not a table]", # nor this
]
notes = """
[mcp_servers.memory]
"""

[profiles."a.b"] # last
x = { y = '}' }
`

t.test('TOML: keys and tables are added, comments stay', async t => {
  const keyed = toml.set(config, ['model_provider'], 'vault')
  t.equal(keyed, config.replace('one\n', 'one\nmodel_provider = "vault"\n'))
  const at = ['mcp_servers', 'memory']
  const server = { url: 'u', http_headers: { 'X-Y': 'a "b", c = d' } }
  const grown = toml.set(keyed, at, server)
  const written = '[mcp_servers.memory]\nurl = "u"\nhttp_headers = { X-Y = "a \\"b\\", c = d" }\n'
  t.equal(grown, `${keyed}\n${written}`)
  t.equal(toml.get(grown, [...at, 'url']), 'u')
  t.same(toml.get(grown, at), server)
  t.equal(toml.set(grown, at, server), grown)
  t.match(toml.set(grown, ['model'], 'gpt-6'), '\nmodel = "gpt-6"\n')
  const own = '[a.b]\r\nb = 1\r\n[a.b.c]\r\n# mine\r\nd = 2\r\n'
  t.equal(toml.set(`${own}\r\n[z]`, ['a', 'b'], { b: '3' }), '[a.b]\r\nb = "3"\r\n\r\n[z]\r\n')
  t.equal(toml.set('', ['model_provider'], 'vault'), 'model_provider = "vault"\n')
  t.equal(toml.set('[a]\nb = 1', ['m'], 'v'), 'm = "v"\n[a]\nb = 1\n')
  for (const other of [
    'mcp_servers = { memory = { url = "u" } }\n',
    'mcp_servers.memory.url = "u"\n',
    '[mcp_servers]\nmemory.url = "u"\n',
    '[mcp_servers.memory]\nurl = "u"\n[x]\n[mcp_servers.memory.env]\na = "b"\n',
    'a = "x\n',
    'a = [1\n',
    'a\n',
  ]) {
    t.throws(() => toml.set(other, at, server), FormatError, other)
  }
})

t.test('lines of variables', async t => {
  const text = '# mine\nexport A="1"\nB=2 # two'
  t.equal(dotenv.set(text, ['URL'], 'http://x'), `${text}\nURL=http://x\n`)
  t.equal(dotenv.get(text, ['A']), '1')
  t.equal(dotenv.set(text, ['A'], '3'), text.replace('"1"', '3'))
  t.equal(dotenv.set('B=1\r\n', ['A'], 'a #b'), 'B=1\r\nA="a #b"\r\n')
  t.equal(dotenv.get(dotenv.set('', ['A'], '"a" #b'), ['A']), '"a" #b')
  t.throws(() => dotenv.get('A="1\n2"', ['A']), FormatError)
})

t.test('changes are taken out of a text that was changed elsewhere', async t => {
  const before = 'a\r\nb\n\tc'
  const after = 'new\na\r\nB\n\tc\nlast\n'
  t.equal(takeOut(after, before, after), before)
  t.equal(takeOut(`mine\n${after}too\n`, before, after), `mine\n${before}too\n`)
  t.equal(takeOut(after.replace('last', 'other'), before, after), undefined)
  t.equal(takeOut(`${after}new\n`, before, after), undefined, 'which one is ours is not known')
})
