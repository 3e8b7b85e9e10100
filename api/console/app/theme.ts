export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const place = 'memory-vault.theme'

export const theme = (): Theme => {
  const stored = localStorage.getItem(place)
  return themes.find(name => name === stored) ?? 'auto'
}

/** Shows the console in a theme, and remembers it; `auto` follows the system. */
export function wear(name: Theme): void {
  localStorage.setItem(place, name)
  if (name === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = name
}
