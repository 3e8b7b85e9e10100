import { readFileSync } from 'node:fs'
import t from 'tap'
import { programSnippets } from '#api/console/app/vault/connect/program-snippets.ts'
import { sdkSnippets } from '#api/console/app/vault/connect/sdk-snippets.ts'
import { clients } from '#scripts/clients/connect/clients.ts'

const place = { url: 'http://127.0.0.1:3000', key: 'mk_0123456789abcdef', rights: 'users' } as const

/** Programs that the console and `npm run connect` both know, by the console's name. */
const connectNames: Record<string, string> = {
  'claude-code': 'claude-code',
  codex: 'codex',
  'gemini-cli': 'gemini',
  opencode: 'opencode',
  cursor: 'cursor',
  vscode: 'vscode',
  'open-webui': 'open-webui',
  librechat: 'librechat',
}

for (const [name, connectName] of Object.entries(connectNames)) {
  t.test(`${name}: the console shows what npm run connect writes`, t => {
    const snippets = programSnippets[name]!.snippets(place)
    const files = clients[connectName]!.files(
      { baseUrl: place.url, key: place.key, rights: place.rights },
      { env: {}, home: '/nowhere', platform: 'linux', configDir: undefined, cwd: '/nowhere' },
    )
    // That of LibreChat ends with what a person puts into its librechat.yaml, which the command prints.
    const printed = snippets.slice(files.length).map(({ text }) => text)
    const notes = clients[connectName]!.notes({
      baseUrl: place.url,
      key: place.key,
      rights: place.rights,
    })
    for (const text of printed) t.ok(notes.join('').includes(text), text)
    for (const [index, { format, settings }] of files.entries()) {
      const { text } = snippets[index]!
      for (const { at, value } of settings) {
        // Its tool servers are a list in one variable, which only the command can add to.
        if (at[0] === 'TOOL_SERVER_CONNECTIONS') continue
        const expected = typeof value === 'function' ? value(undefined) : value
        t.same(format.get(text, at), expected, at.join('.'))
      }
    }
    t.end()
  })
}

t.test('SDKs: the console shows the snippets that the page of the API runs', t => {
  const readme = readFileSync('api/README.md', 'utf8')
  const texts = [...readme.matchAll(/```ts\n([^]*?)```/g)].map(([, text]) =>
    text!
      .replaceAll('`${process.env.BASE_URL}/v1`', `'${place.url}/v1'`)
      .replaceAll(/process\.env\.BASE_URL!?/g, `'${place.url}'`)
      .replaceAll(/process\.env\.MEMORY_KEY!?/g, `'${place.key}'`)
      .trim(),
  )
  const blocks = new Set(texts)
  for (const name of ['openai', 'anthropic', 'gemini', 'ai-sdk']) {
    const [snippet] = sdkSnippets[name]!.snippets(place)
    t.ok(blocks.has(snippet!.text), name)
  }
  t.end()
})
