import { Router } from '@koa/router'
import t from 'tap'
import { rememberStaticRoutes } from '#api/edge/static-routes.ts'

/** Two routers with the same routes; one remembers those of paths without parameters. */
function routers() {
  const build = (): Router => {
    const router = new Router()
    const serve = () => {}
    router.get('/v1/keys', serve)
    router.post('/v1/keys', serve)
    router.get('/v1/keys/:id', serve)
    router.get('/v1/keys/mine', serve)
    router.get(/^\/console(?:\/.*)?$/, serve)
    return router
  }
  const remembering = build()
  rememberStaticRoutes(remembering)
  return { plain: build(), remembering }
}

const summaryOf = ({ path, pathAndMethod, route }: ReturnType<Router['match']>) => ({
  path: path.map(layer => String(layer.path)),
  served: pathAndMethod.map(layer => `${layer.methods.join()} ${String(layer.path)}`),
  route,
})

t.test('the same routes are found, however often a path is asked for', async t => {
  const { plain, remembering } = routers()
  const paths = [
    '/v1/keys',
    '/v1/keys/',
    '/V1/KEYS',
    '/v1/keys/a',
    '/v1/keys/mine',
    '/console/x',
    '/no',
  ]
  for (let round = 0; round < 3; round++) {
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'DELETE', 'get']) {
        t.same(
          summaryOf(remembering.match(path, method)),
          summaryOf(plain.match(path, method)),
          `${method} ${path}`,
        )
      }
    }
  }
})

t.test('a found list may be added to', async t => {
  const { remembering } = routers()
  const first = remembering.match('/v1/keys', 'GET')
  first.path.push(first.path[0]!)
  t.equal(remembering.match('/v1/keys', 'GET').path.length, 2)
})

t.test('a path with parameters, which may be a key, is not kept', async t => {
  const { remembering } = routers()
  const layer = remembering.stack.find(({ path }) => path === '/v1/keys/:id')!
  const match = layer.match.bind(layer)
  let tried = 0
  layer.match = path => {
    tried++
    return match(path)
  }
  remembering.match('/v1/keys/a', 'GET')
  remembering.match('/v1/keys/a', 'GET')
  t.equal(tried, 2)
  remembering.match('/v1/keys', 'POST')
  remembering.match('/v1/keys', 'POST')
  t.equal(tried, 3, 'one without is')
})
