import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { look, openTab, plainHost, press, signIn, visit } from '#test/console/browser.ts'
import { programs } from '#api/client/programs/programs.ts'
import { snippetsOf } from '#api/client/programs/snippets.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { startConsole } from '#test/console/console.ts'

const provider = await startModelProvider(t)
const { key, base, api, test } = await startConsole(t, provider.env)

test('connect: the key is hidden on the page, and copied whole', async (t, { page, open }) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(key, 'connect')
  await page.getByRole('link', { name: 'Claude Code' }).click()
  await page.getByRole('heading', { name: 'Claude Code' }).waitFor()
  t.equal(await page.getByRole('button', { name: /^Copy with/ }).count(), 0)
  await page.getByRole('button', { name: 'Make a key for Claude Code' }).click()
  await page.getByRole('button', { name: 'Copy with the key: ~/.claude/settings.json' }).click()
  await page.getByText('Copied.').waitFor()
  const copied = await page.evaluate(() => navigator.clipboard.readText())
  const { env } = JSON.parse(copied) as { env: Record<string, string> }
  t.equal(env.ANTHROPIC_BASE_URL, base)
  const made = env.ANTHROPIC_CUSTOM_HEADERS!.replace('X-Memory-Key: ', '')
  t.not(made, key, 'the key of the account is copied nowhere')
  const content = await page.content()
  for (const secret of [made, key]) t.notOk(content.includes(secret))
  await page.getByText('Waiting for its first call').waitFor()
  const client = createTestClient(base, made)
  t.equal((await client.post('/v1/memory/search', { query: 'cat', limit: 1 })).status, 200)
  t.equal((await client.get('/v1/account/policy')).status, 403)
  await page.getByText('Got it: Claude Code has called.').waitFor()
  await look(t, page, 'connect-claude-code')
  const field = page.getByLabel('Find')
  await field.fill('python langg')
  await field.press('Enter')
  const shown = page.locator('figure', { hasText: 'memory-vault-client/langgraph' }).locator('pre')
  const place = { url: base, key: 'mk_…', rights: 'memory' } as const
  t.equal(
    await shown.textContent(),
    snippetsOf(programs.langgraph!, place)[0]!.text,
    'comments and empty lines too',
  )
  t.match(new URL(page.url()).hash, '#/connect?client=langgraph')
  await look(t, page, 'connect-langgraph')
  await field.fill('nothing of this name')
  await page.getByText('None of this name').waitFor()
  await field.fill('')
  await page.getByRole('link', { name: 'OpenAI SDK' }).click()
  await page.getByText("baseURL: '").waitFor()
  t.match(new URL(page.url()).hash, '#/connect?client=openai')
  await page.getByRole('link', { name: 'AnythingLLM' }).click()
  await page.getByText('Everybody who uses this AnythingLLM shares the vault').waitFor()
  await page.getByRole('link', { name: 'Open WebUI' }).click()
  await page.getByText('FORWARD_USER_INFO_HEADER_USER_ID=X-Memory-User').waitFor()
  await look(t, page, 'connect-open-webui')
})

test('connect: a call that the provider refuses is told, and no tick is set', async (t, {
  open,
}) => {
  const page = await open(key, 'connect')
  await press(page, 'Make a key for OpenAI SDK')
  await page.getByText('Waiting for its first call').waitFor()
  const made = (await api.get('/v1/keys?active=true')).body.items[0]
  t.match(made, { name: 'OpenAI SDK', last_used_at: null })
  const secret = await page.evaluate(async () => {
    const copied = Promise.withResolvers<string>()
    navigator.clipboard.writeText = async text => copied.resolve(text)
    document.querySelector<HTMLButtonElement>('.snippet button')!.click()
    return copied.promise
  })
  const words = 'Incorrect API key provided'
  provider.respondNext(respondJson({ error: { message: words } }, { status: 401 }))
  const body = JSON.stringify({
    model: 'openai/gpt-5',
    messages: [{ role: 'user', content: 'Which boat is blue?' }],
  })
  const headers = {
    'x-memory-key': /mk_\w{32}/.exec(secret)![0],
    'x-provider-key': 'sk-bad',
    'content-type': 'application/json',
  }
  await fetch(`${base}/v1/chat/completions`, { method: 'POST', headers, body })
  await page.getByText(`OpenAI SDK has called, but openai answered 401. ${words}`).waitFor()
  t.equal(await page.locator('.steps .done').count(), 1)
  await page.getByRole('link', { name: 'See the call' }).click()
  await page.getByText('openai answered 401.').waitFor()
  await look(t, page, 'call-refused')
  await visit(page, 'traces')
  await press(page, 'Failed')
  await page.locator('.rows .chip-bad').getByText('401 from openai').waitFor()
  await page.getByText(words).waitFor()
  await look(t, page, 'calls-failed')
})

test('connect: without https the key is readable once, and copied all the same', async t => {
  const { page, faults } = await openTab(t, base.replace('127.0.0.1', plainHost))
  await signIn(page, key)
  await visit(page, 'connect')
  t.equal(await page.evaluate(() => isSecureContext), false)
  await press(page, 'Make a key for OpenAI SDK')
  const shown = page.locator('.snippet pre').first()
  await page.getByText('The key stands here this one time').waitFor()
  t.match(await shown.textContent(), /mk_\w{32}/)
  await page.locator('.snippet').first().getByRole('button', { name: /^Copy/ }).click()
  await page.getByText('Copied.').waitFor()
  await look(t, page, 'connect-plain-http')
  await visit(page, 'keys')
  await press(page, /^New key/)
  await press(page.getByRole('dialog'), 'Create')
  await page.locator('.secret').waitFor()
  await press(page, 'Copy', { exact: true })
  await press(page, 'I have copied it')
  // Browsers say that they ignore a header of pages without https.
  t.same(
    faults.filter(fault => !fault.startsWith('The Cross-Origin-Opener-Policy header')),
    [],
  )
})

test('keys: a provider key is tried before it is stored, and says whether it works', async (t, {
  open,
}) => {
  const page = await open(key, 'providers')
  await press(page, 'Add a provider key')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Key', { exact: true }).fill('sk-bad-000')
  const refusal = { error: { message: 'Incorrect API key provided' } }
  provider.respondAlways(respondJson(refusal, { status: 401 }))
  await press(dialog, 'Save')
  await dialog.getByRole('alert').getByText('401').waitFor()
  t.same((await api.get('/v1/account/provider-keys')).body.provider_keys, [], 'it is not stored')
  await look(t, page, 'keys-provider-refused')
  await dialog.getByLabel(/^Ask .+ once before/).uncheck()
  await press(dialog, 'Save')
  await page.getByText('The key is stored untried.').waitFor()
  await page.getByText(/openai answers with status 401: Incorrect API key provided/).waitFor()
  await look(t, page, 'keys-provider-fault')
  await visit(page, 'playground')
  await page.getByText(/openai answers with status 401: Incorrect API key provided/).waitFor()
  t.equal((await api.send('DELETE', '/v1/account/provider-keys/openai')).status, 200)
})
