/// <reference lib="dom" />
// Stands in the page itself: the form for signing in works before anything else is loaded, and the console takes it over.
{
  const root = document.documentElement
  const { entry, modules } = document.currentScript!.dataset
  const theme = localStorage.getItem('memory-vault.theme')
  if (theme === 'light' || theme === 'dark') root.style.colorScheme = root.dataset.theme = theme

  const [place] = location.hash.replace(/^#\/?/, '').split(/[/?]/)
  const isKnown = sessionStorage.getItem('memory-vault.credential') !== null
  const mayBeKnown = localStorage.getItem('memory-vault.last-tab') !== null
  const isForm = place === 'sign-in' || !(isKnown || mayBeKnown || /^(?:open|login)$/.test(place!))
  if (!isForm) root.dataset.door = 'shut'
  const openDoor = (): void => {
    if (root.dataset.door === 'shut') delete root.dataset.door
  }
  // No other tab has answered by then.
  if (!isKnown && mayBeKnown) setTimeout(openDoor, 1_500)

  addEventListener('submit', event => {
    if (event.defaultPrevented) return
    event.preventDefault()
    root.dataset.door = 'asked'
    const button = document.querySelector<HTMLButtonElement>('.door button')!
    button.disabled = true
    button.textContent = 'Working …'
  })

  const start = (): void => {
    for (const href of modules!.split(' ')) {
      document.head.append(
        Object.assign(document.createElement('link'), { rel: 'modulepreload', href }),
      )
    }
    import(entry!).catch(() => {
      openDoor()
      document.querySelector<HTMLElement>('.door-stuck')!.hidden = false
    })
  }
  // What the form needs comes first: on a slow line all that is asked for shares it.
  addEventListener('DOMContentLoaded', () => {
    const sheet = document.querySelector<HTMLLinkElement>('link[rel="stylesheet"]')!
    if (sheet.sheet) start()
    else for (const event of ['load', 'error']) sheet.addEventListener(event, start, { once: true })
  })
}
