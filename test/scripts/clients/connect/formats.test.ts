import fc from 'fast-check'
import t from 'tap'
import { dotenv } from '#scripts/clients/connect/formats/dotenv.ts'
import { FormatError } from '#scripts/clients/connect/formats/file-format.ts'
import { jsonc } from '#scripts/clients/connect/formats/jsonc.ts'
import { toml } from '#scripts/clients/connect/formats/toml.ts'

t.test('JSON: a value is added and taken out without touching the rest', async t => {
  const commented = `\uFEFF// mine
{
    "theme": "dark", // not light
    /* servers */
    "servers": {
        "other": {"url": "https://x/, }//"}, // the old one
    },
    "list": [1, 2,],
}
`
  const at = ['servers', 'memory']
  const grown = jsonc.set(commented, at, jsonc.write({ url: 'u', headers: { A: 'b' } }, at))
  t.equal(
    grown,
    commented.replace(
      '// the old one\n',
      '// the old one\n        "memory": {\n            "url": "u",\n            "headers": {\n                "A": "b"\n            }\n        },\n',
    ),
  )
  t.same(jsonc.read(jsonc.find(grown, ['servers', 'memory', 'headers'])!), { A: 'b' })
  t.equal(jsonc.remove(grown, at, 1), commented)
})

t.test('JSON: short, empty and missing objects', async t => {
  const at = ['a', 'b']
  for (const text of [
    '{}',
    '{ }\n',
    '{"c":1}',
    '{ "c": 1 /* x */ }',
    '{\r\n\t"c": 1\r\n}\r\n',
    '{"a": {}}',
  ]) {
    const grown = jsonc.set(text, at, '"v"')
    t.equal(jsonc.read(jsonc.find(grown, at)!), 'v', grown)
    t.equal(jsonc.set(grown, at, '"v"'), grown)
    const back = jsonc.remove(grown, at, text.includes('"a"') ? 1 : 0)
    t.equal(back.replaceAll(/\s/g, ''), text.replaceAll(/\s/g, ''), back)
  }
  t.equal(jsonc.set('', at, '"v"'), '{\n  "a": {\n    "b": "v"\n  }\n}\n')
  t.equal(jsonc.set('// nothing yet', ['a'], '1'), '// nothing yet\n{\n  "a": 1\n}\n')
  for (const wrong of ['[1]', '{"a": 1}', '{"a" 1}', '{,}', '{"a": tru}', '{} {}', '{"a": "x']) {
    t.throws(() => jsonc.set(wrong, at, '1'), FormatError, wrong)
  }
})

t.test('JSON: any object, written in any way, keeps everything else', async t => {
  const name = fc.constantFrom('a', 'b', 'c', 'd d', '"')
  const { object } = fc.letrec(tie => ({
    value: fc.oneof(fc.integer(), fc.string(), fc.array(fc.string()), tie('object')),
    object: fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  }))
  const indents = fc.constantFrom(undefined, 2, 4, '\t')
  fc.assert(
    fc.property(
      object,
      fc.array(name, { minLength: 1, maxLength: 3 }),
      indents,
      (value, at, indent) => {
        const text = JSON.stringify(value, null, indent)
        const depth = at.findIndex(
          (_, index) => jsonc.find(text, at.slice(0, index + 1)) === undefined,
        )
        // A scalar on the way is a refusal, tried above.
        if (depth === -1 || (depth > 0 && !jsonc.find(text, at.slice(0, depth))!.startsWith('{')))
          return
        const grown = jsonc.set(text, at, '{"new": true}')
        t.same(jsonc.read(jsonc.find(grown, at)!), { new: true })
        const back = jsonc.remove(grown, at, depth)
        if (!jsonc.isSame(back, text)) throw new Error(`${text}\n${grown}\n${back}`)
        const emptied = /\{\s*\}/.test(text) || indent === undefined
        if (!emptied && back !== text) throw new Error(`not the same bytes:\n${text}\n${back}`)
      },
    ),
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

t.test('TOML: keys and tables are added and taken out, comments stay', async t => {
  const keyed = toml.set(config, ['model_provider'], toml.write('vault', ['model_provider']))
  t.equal(keyed, config.replace('one\n', 'one\nmodel_provider = "vault"\n'))
  const at = ['mcp_servers', 'memory']
  const raw = toml.write({ url: 'u', http_headers: { 'X-Y': 'a "b", c = d' } }, at)
  t.equal(raw, '[mcp_servers.memory]\nurl = "u"\nhttp_headers = { X-Y = "a \\"b\\", c = d" }')
  const grown = toml.set(keyed, at, raw)
  t.equal(grown, `${keyed}\n${raw}\n`)
  t.equal(toml.read(toml.find(grown, [...at, 'url'])!), 'u')
  t.same(toml.read(toml.find(grown, [...at, 'http_headers'])!), { 'X-Y': 'a "b", c = d' })
  t.equal(toml.set(grown, at, raw), grown)
  t.equal(toml.remove(toml.remove(grown, at, 0), ['model_provider'], 0), config)
  const replaced = toml.set(grown, ['model'], '"gpt-6"')
  t.match(replaced, 'model = "gpt-6" # the large one\n')
})

t.test('TOML: an empty file, and what is not changed', async t => {
  const first = toml.set('', ['model_provider'], '"vault"')
  t.equal(first, 'model_provider = "vault"\n')
  t.equal(toml.remove(first, ['model_provider'], 0), '')
  const before = toml.set('[a]\nb = 1\n', ['model_provider'], '"vault"')
  t.equal(before, 'model_provider = "vault"\n\n[a]\nb = 1\n')
  t.equal(toml.remove(before, ['model_provider'], 0), '[a]\nb = 1\n')
  const at = ['mcp_servers', 'memory']
  for (const other of [
    'mcp_servers = { memory = { url = "u" } }\n',
    'mcp_servers.memory.url = "u"\n',
    '[mcp_servers]\nmemory.url = "u"\n',
    '[mcp_servers.memory]\nurl = "u"\n[x]\n[mcp_servers.memory.env]\na = "b"\n',
    'a = "x\n',
    'a = [1\n',
    'a\n',
  ]) {
    t.throws(() => toml.set(other, at, '[mcp_servers.memory]'), FormatError, other)
  }
})

t.test('lines of variables', async t => {
  const text = '# mine\nexport A="1"\nB=2 # two'
  const grown = dotenv.set(text, ['URL'], dotenv.write('http://x', ['URL']))
  t.equal(grown, `${text}\nURL=http://x\n`)
  t.equal(dotenv.read(dotenv.find(grown, ['A'])!), '1')
  t.equal(dotenv.set(text, ['A'], '3'), text.replace('"1"', '3'))
  t.equal(dotenv.remove(grown, ['URL'], 0), `${text}\n`)
  t.equal(dotenv.write('a #b', ['A']), '"a #b"')
  t.equal(dotenv.read(dotenv.write('"a" #b', ['A'])), '"a" #b')
  t.throws(() => dotenv.find('A="1\n2"', ['A']), FormatError)
})
