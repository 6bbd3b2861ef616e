// A small chart of points and lines with two axes.
import type { ComponentChildren } from "preact";
import { place, tickText, ticks, type Axis } from "./plot";

export const PLOT = { left: 62, right: 14, top: 12, bottom: 44 };

interface Props {
  width: number;
  height: number;
  across: Axis;
  up: Axis;
  name: string; // of the chart, for people who hear it
  acrossTitle: string;
  upTitle: string;
  acrossText?: (value: number) => string;
  upText?: (value: number) => string;
  children: ComponentChildren;
}

export function Plot({ width, height, across, up, name, acrossTitle, upTitle, acrossText, upText, children }: Props) {
  return (
    <figure class="plot">
      <figcaption>{upTitle}</figcaption>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={name}>
        {ticks(up.low, up.high).map((value) => (
          <g key={value}>
            <line class="grid" x1={across.from} x2={across.to} y1={place(up, value)} y2={place(up, value)} />
            <text class="tick" x={across.from - 6} y={place(up, value) + 4} text-anchor="end">{(upText ?? tickText)(value)}</text>
          </g>
        ))}
        {ticks(across.low, across.high, Math.max(2, Math.min(6, Math.floor(width / 60)))).map((value) => (
          <text key={value} class="tick" x={place(across, value)} y={up.from + 16} text-anchor="middle">
            {(acrossText ?? tickText)(value)}
          </text>
        ))}
        <text class="tick" x={(across.from + across.to) / 2} y={up.from + 34} text-anchor="middle">{acrossTitle}</text>
        {children}
      </svg>
    </figure>
  );
}
