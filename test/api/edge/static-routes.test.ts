import { createServer } from 'node:http'
import { Router } from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import t from 'tap'
import { dispatchRoutes } from '#api/edge/static-routes.ts'
import { listen } from '#test/support/start/listen.ts'

const answer =
  (by: string): Middleware =>
  ctx => {
    const { params, _matchedRoute: route } = ctx as Context & { _matchedRoute: unknown }
    ctx.body = { by, params: { ...(params as object) }, route: String(route) }
  }

function build(): Router {
  const router = new Router()
  router.get('/v1/keys', answer('list'))
  router.post('/v1/keys', answer('make'))
  router.get('/v1/keys/:id', answer('one'))
  router.get('/v1/keys/mine', answer('mine'))
  router.get('/v1/both', answer('first'))
  router.get('/v1/both', answer('second'))
  router.get(/^\/console(?:\/.*)?$/, answer('console'))
  return router
}

t.test('the same handlers serve as those of the router, and no pattern is tried', async t => {
  const router = build()
  const dispatch = dispatchRoutes(router)
  let tried = 0
  const match = router.match.bind(router)
  router.match = (...asked) => {
    tried++
    return match(...asked)
  }
  const serve = (routes: Middleware): Promise<string> => {
    const handle = new Koa().use(routes).callback()
    return listen(
      t,
      createServer((request, response) => void handle(request, response)),
    )
  }
  const plain = await serve(build().routes() as unknown as Middleware)
  const mapped = await serve(dispatch)
  const asked = async (base: string, method: string, path: string): Promise<unknown> => {
    const response = await fetch(base + path, { method })
    return [response.status, await response.text()]
  }
  const paths = '/v1/keys /v1/keys/ /V1/KEYS /v1/keys/a /v1/keys/mine /v1/both /console/x /no'
  for (const path of paths.split(' ')) {
    for (const method of ['GET', 'POST', 'DELETE', 'HEAD']) {
      const [one, other] = [await asked(mapped, method, path), await asked(plain, method, path)]
      t.same(one, other, `${method} ${path}`)
    }
  }
  tried = 0
  await asked(mapped, 'POST', '/v1/keys')
  t.equal(tried, 0)
  await asked(mapped, 'GET', '/v1/keys/a')
  t.equal(tried, 1)
})
