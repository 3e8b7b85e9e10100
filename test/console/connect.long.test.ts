import t from 'tap'
import { createTestClient } from '#test/support/api.ts'
import { look } from '#test/console/browser.ts'
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
  const client = createTestClient(base, made)
  t.equal((await client.get('/v1/memory/stats')).status, 200)
  t.equal((await client.get('/v1/account/policy')).status, 403)
  await look(t, page, 'connect-claude-code')
  await page.getByRole('link', { name: 'OpenAI SDK' }).click()
  await page.getByText("baseURL: '").waitFor()
  t.match(new URL(page.url()).hash, '#/connect?client=openai')
  await page.getByRole('link', { name: 'AnythingLLM' }).click()
  await page.getByText('Everybody who uses this AnythingLLM shares the vault').waitFor()
  await page.getByRole('link', { name: 'Open WebUI' }).click()
  await page.getByText('FORWARD_USER_INFO_HEADER_USER_ID=X-Memory-User').waitFor()
  await look(t, page, 'connect-open-webui')
})
