import type { Router } from '@koa/router'

/** Spellings of paths in capitals, or with a slash at their end, count too. */
const pathsMax = 1_000

/**
 * Remembers which layers serve a path without parameters: a router tries the pattern of every route, over a
 * hundred of them, for each request. Paths with parameters may hold keys and are never kept.
 */
export function rememberStaticRoutes(router: Router): void {
  const match = router.match.bind(router)
  const known = new Map<string, ReturnType<typeof match>>()
  router.match = (path, method) => {
    const name = `${method} ${path}`
    const found = known.get(name) ?? match(path, method)
    if (found.route && known.size < pathsMax && found.path.every(isStatic)) known.set(name, found)
    // The router may add to the list of a request.
    return { ...found, path: [...found.path] }
  }
}

const isStatic = ({ path, paramNames }: { path: unknown; paramNames: unknown[] }): boolean =>
  typeof path === 'string' && paramNames.length === 0 && !path.includes(':')
