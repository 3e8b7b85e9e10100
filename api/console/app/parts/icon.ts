import { html, type View } from '#api/console/app/html.ts'

/** Outlines on a square of 24 units, by what they stand for: pages by the last segment of their route. */
const outlines: Record<string, string> = {
  overview: 'M4 13h6V4H4zM14 20h6V4h-6zM4 20h6v-3H4z',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20',
  profile: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20a7.5 7.5 0 0 1 15 0',
  timeline: 'M12 4v16M12 7h6M12 12H6M12 17h6',
  reflections: 'M12 3v4M6 11h12M6 11v4M18 11v4M12 7v4M4 15h4v5H4zM16 15h4v5h-4z',
  playground: 'M4 5h16v11H10l-5 4v-4H4zM8 9h8M8 12h5',
  sessions: 'M4 6h12v9H8l-4 3zM16 9h4v11l-3-2h-7v-3',
  shared:
    'M6 14a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM18 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM18 21a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM8.2 10.3l7.6-3.6M8.2 12.7l7.6 4.6',
  connect: 'M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4',
  files: 'M12 15V4M8 8l4-4 4 4M4 15v5h16v-5',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  usage: 'M4 20h16M7 20v-6M12 20V6M17 20v-9',
  operations: 'M5 12a7 7 0 0 1 12-5l2 2M19 5v4h-4M19 12a7 7 0 0 1-12 5l-2-2M5 19v-4h4',
  keys: 'M8 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 12h9M18 12v4',
  applications: 'M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM17 14v6M14 17h6',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14a6.5 6.5 0 0 1 3.5 6',
  members:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14a6.5 6.5 0 0 1 3.5 6',
  webhooks: 'M13 3 5 14h6l-1 7 8-11h-6z',
  account: 'M12 3 4 6v6c0 5 3.5 8 8 9 4.5-1 8-4 8-9V6z',
  policy: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 4v6M8 14v6',
  settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 4v6M8 14v6',
  review: 'M4 5h16v14H4zM8 12l3 3 5-6',
  'see-as':
    'M3 12s3.5-6 9-6 9 6 9 6-3.5 6-9 6-9-6-9-6zM12 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z',
  trial: 'M9 4h6M10 4v6l-5 9h14l-5-9V4M8 15h8',
  memories: 'M4 6h16M4 12h16M4 18h10',
  roles: 'M12 3 4 6v6c0 5 3.5 8 8 9 4.5-1 8-4 8-9V6z',
  tags: 'M4 4h8l8 8-8 8-8-8zM8 8h.1',
  instructions: 'M6 3h12v18H6zM9 8h6M9 12h6M9 16h3',
  audit: 'M6 3h12v18H6zM9 13l2 2 4-5',
  events: 'M12 4v8l5 3M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  passes: 'M4 6h6v5H4zM14 13h6v5h-6zM10 8.5h4a3 3 0 0 1 3 3V13',
  traces: 'M3 12h4l3-8 4 16 3-8h4',
  orgs: 'M4 21V4h9v17M13 9h7v12M7 8h3M7 12h3M7 16h3M16 13h1M16 17h1M3 21h18',
  queues: 'M4 6h10M4 12h16M4 18h7',
  home: 'M3 12 12 4l9 8M6 10v10h5v-6h2v6h5V10',
  admins: 'M8 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 12h9M18 12v4',
  team: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14a6.5 6.5 0 0 1 3.5 6',
  service: 'M4 4h16v6H4zM4 14h16v6H4zM8 7h.1M8 17h.1',
  tenants: 'M4 21V9l8-5 8 5v12zM10 21v-6h4v6',
}

/** An outline in the colour of the text, hidden from screen readers; null for an unknown name. */
export const icon = (name: string): View | null =>
  outlines[name] === undefined
    ? null
    : html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
        <g fill="none" stroke="currentColor" stroke-linecap="round" stroke-linejoin="round">
          <path stroke-width="1.75" d=${outlines[name]} />
        </g>
      </svg>`

/** The mark of the product: the door of a vault. */
export const mark = (): View =>
  html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <rect x="1" y="1" width="22" height="22" rx="6" fill="var(--accent)" />
    <g fill="none" stroke="var(--accent-ink)" stroke-width="2">
      <circle cx="12" cy="12" r="6" />
      <path d="M12 3.5v4M12 16.5v4M3.5 12h4M16.5 12h4" />
    </g>
    <circle cx="12" cy="12" r="2" fill="var(--accent-ink)" />
  </svg>`
