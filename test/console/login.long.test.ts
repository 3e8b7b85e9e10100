import t from 'tap'
import { look, noBrowser, openTab, press, visit } from '#test/console/browser.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { startIdentityProvider } from '#test/support/doubles/identity-provider.ts'
import { startOAuthService } from '#test/support/start/oauth.ts'

t.test('a person signs in by a provider, looks, and signs out', { skip: noBrowser }, async t => {
  const provider = await startIdentityProvider(t, {
    rosa: { email: 'rosa@example.com', email_verified: true },
  })
  const { backend, base } = await startOAuthService(t, { env: provider.env })
  provider.open(`${base}/console/login/callback`)
  const ownerKey = await buildKey(backend, 'rosa@example.com')
  const { page, faults } = await openTab(t, base)
  await page.goto('/console')
  await look(t, page, 'door-with-provider')
  await page.getByRole('link', { name: 'Sign in with Example' }).click()
  await page.locator('input[name="login"]').fill('rosa')
  await page.locator('input[name="password"]').fill('x')
  await page.locator('button[type="submit"]').click()
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('You are rosa@example.com.').waitFor()
  await look(t, page, 'login-choices')
  await press(page, /^Open your vault/)
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  await visit(page, 'keys')
  await page.getByText('Console login').waitFor()
  const client = createTestClient(base, ownerKey)
  const keyOfLogin = async () => {
    const { items } = (await client.get('/v1/keys')).body
    return (items as { name: string; active: boolean }[]).find(({ name }) => /login/.test(name))
  }
  t.equal((await keyOfLogin())!.active, true)
  const ended = page.waitForResponse(`${base}/console/login/end`)
  await press(page, 'Sign out')
  await ended
  await page.getByRole('link', { name: 'Sign in with Example' }).waitFor()
  t.equal((await keyOfLogin())!.active, false)
  t.same(faults, [])
})
