import t from 'tap'
import { createTestBackend } from '#test/support/start/backend.ts'
import { FormBrowser, serveWithConfig } from '#test/support/start/oauth.ts'
import { openIdShapes, startOpenIdDouble } from '#test/support/doubles/openid-double.ts'

/** The sign-in at the providers that there are: each as it answers, and each fault a page and a line of the log. */

const backend = await createTestBackend(t)
const lines: string[] = []
Object.assign(backend.log, { warn: (_: object, event: string) => void lines.push(event) })

for (const shape of openIdShapes) {
  t.test(shape.provider, async t => {
    const { oidc, asked } = await startOpenIdDouble(t, shape)
    const base = await serveWithConfig(t, backend, { oidc })
    lines.length = 0
    const signIn = async (): Promise<{ browser: FormBrowser; back: Response }> => {
      const browser = new FormBrowser()
      const begun = await browser.open(`${base}/console/login`)
      const sent = await fetch(begun.headers.get('location')!, { redirect: 'manual' })
      const { search } = new URL(sent.headers.get('location')!)
      // As Apple does: a form, without the cookie of the browser.
      const form = await fetch(`${base}/console/login/callback`, {
        method: 'POST',
        body: new URLSearchParams(search),
        redirect: 'manual',
      })
      return { browser, back: await browser.open(form.headers.get('location')!) }
    }
    const { browser, back } = await signIn()
    if (shape.refused) {
      t.ok([403, 502].includes(back.status), `${back.status}`)
      t.match(await back.text(), shape.refused)
      t.match(back.headers.get('content-type'), 'text/html')
      t.same(lines, ['login.failed'])
      return
    }
    t.equal(back.headers.get('location'), '/console#/login')
    const choices = await browser.open(`${base}/console/login/choices`)
    t.match(await choices.json(), { email: shape.email, choices: [] })
    if (shape.takes) {
      await signIn()
      t.same(asked, ['client_secret_post', 'client_secret_basic', 'client_secret_basic'])
    }
  })
}
