import t from 'tap'
import { look } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'

const { key, base, test } = await startConsole(t)

test('connect: the key is hidden on the page, and copied whole', async (t, { page, open }) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(key, 'connect')
  await page.getByRole('link', { name: 'Claude Code' }).click()
  await page.getByRole('heading', { name: 'Claude Code' }).waitFor()
  t.notMatch(await page.content(), key)
  await page.getByRole('button', { name: 'Copy with the key: ~/.claude/settings.json' }).click()
  await page.getByText('Copied.').waitFor()
  const copied = await page.evaluate(() => navigator.clipboard.readText())
  t.same(JSON.parse(copied), {
    env: { ANTHROPIC_BASE_URL: base, ANTHROPIC_CUSTOM_HEADERS: `X-Memory-Key: ${key}` },
  })
  await look(t, page, 'connect-claude-code')
  await page.getByRole('link', { name: 'OpenAI SDK' }).click()
  await page.getByText("baseURL: '").waitFor()
  t.match(new URL(page.url()).hash, '#/connect?client=openai')
})
