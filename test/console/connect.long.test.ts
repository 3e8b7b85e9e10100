import t from 'tap'
import { createTestClient } from '#test/support/api.ts'
import { look } from '#test/console/browser.ts'
import { frameworkSnippets } from '#api/console/app/vault/connect/framework-snippets.ts'
import { startConsole } from '#test/console/console.ts'

const { key, base, test } = await startConsole(t)

test('connect: the key is hidden on the page, and copied whole', async (t, { page, open }) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(key, 'connect')
  await page.getByRole('link', { name: 'Claude Code' }).click()
  await page.getByRole('heading', { name: 'Claude Code' }).waitFor()
  t.equal(await page.getByRole('button', { name: /^Copy/ }).count(), 0)
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
  const { snippets } = frameworkSnippets.langgraph!
  const place = { url: base, key: 'mk_…', rights: 'memory' } as const
  t.equal(await shown.textContent(), snippets(place)[0]!.text, 'comments and empty lines too')
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
