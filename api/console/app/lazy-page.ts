import { useEffect, useState } from 'preact/hooks'
import type { FunctionComponent } from 'preact'
import { toFault, type Fault } from '#api/console/app/api-call.ts'
import { renderComponent, type View } from '#api/console/app/html.ts'
import { faultNote, loadingNote } from '#api/console/app/parts/query-view.ts'

/**
 * A page whose modules the browser loads when it is opened for the first time.
 *
 * @param load imports the module
 */
export function lazyPage<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | undefined
  return function LazyPage(props: Props): View | null {
    const [Page, setPage] = useState(() => loaded)
    const [fault, setFault] = useState<Fault>()
    const [attempt, setAttempt] = useState(0)
    useEffect(() => {
      if (loaded) return
      setFault(undefined)
      load().then(
        component => {
          loaded = component
          setPage(() => component)
        },
        (error: unknown) => setFault(toFault(error)),
      )
    }, [attempt])
    if (Page) return renderComponent(Page, props)
    return fault ? faultNote(fault, () => setAttempt(attempt + 1)) : loadingNote('the page')
  }
}
