#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/process/dynlib.h"
#include "report/cells.h"
#include "report/svg/svg_format.h"

namespace jouleprof::report {
namespace {

constexpr double kMeanWidth = 0.55;  // of a character, of the font's size

std::string_view gap(std::string_view attributes) { return attributes.empty() ? "" : " "; }

// Of GLib, cairo and librsvg 2.46 and newer: the little that is called here.
struct GlibError {
  std::uint32_t domain;
  int code;
  char* message;
};
struct Rectangle {
  double x, y, width, height;
};
struct RsvgHandle;
struct Cairo;
struct Surface;
using WriteBytes = int(void* to, const unsigned char* bytes, unsigned length);

constexpr int kArgb32 = 0;
constexpr int kSuccess = 0;

class Renderer {
 public:
  static Result<Renderer> open() {
    Renderer r;
    const auto load = [](DynLib& library, const char* name) -> Result<void> {
      auto opened = DynLib::open(name);
      if (!opened) {
        return fail(Errc::kUnavailable,
                    fmt::format("cannot draw a PNG: {}; install librsvg (apt-get install "
                                "librsvg2-2), or write an SVG",
                                opened.error().message));
      }
      library = std::move(*opened);
      return {};
    };
    // librsvg brings the others.
    for (const auto& [library, name] :
         {std::pair(&r.rsvg_, "librsvg-2.so.2"), std::pair(&r.cairo_, "libcairo.so.2"),
          std::pair(&r.gobject_, "libgobject-2.0.so.0"), std::pair(&r.glib_, "libglib-2.0.so.0")}) {
      if (auto loaded = load(*library, name); !loaded) return forward_error(loaded);
    }
    const bool complete = r.rsvg_.bind(r.handle_new, "rsvg_handle_new_from_data") &&
                          r.rsvg_.bind(r.render, "rsvg_handle_render_document") &&
                          r.rsvg_.bind(r.dimensions, "rsvg_handle_get_intrinsic_size_in_pixels") &&
                          r.cairo_.bind(r.surface_new, "cairo_image_surface_create") &&
                          r.cairo_.bind(r.surface_free, "cairo_surface_destroy") &&
                          r.cairo_.bind(r.cairo_new, "cairo_create") &&
                          r.cairo_.bind(r.cairo_free, "cairo_destroy") &&
                          r.cairo_.bind(r.write_png, "cairo_surface_write_to_png_stream") &&
                          r.gobject_.bind(r.unref, "g_object_unref") &&
                          r.glib_.bind(r.error_free, "g_error_free");
    if (!complete) {
      return fail(Errc::kUnavailable,
                  "cannot draw a PNG: librsvg 2.52 or newer is needed; write an SVG instead");
    }
    return r;
  }

  std::string take(GlibError* error) const {
    const std::string text = error != nullptr ? error->message : "no reason was given";
    if (error != nullptr) error_free(error);
    return text;
  }

  RsvgHandle* (*handle_new)(const std::uint8_t*, std::size_t, GlibError**) = nullptr;
  int (*render)(RsvgHandle*, Cairo*, const Rectangle*, GlibError**) = nullptr;
  int (*dimensions)(RsvgHandle*, double*, double*) = nullptr;
  Surface* (*surface_new)(int, int, int) = nullptr;
  void (*surface_free)(Surface*) = nullptr;
  Cairo* (*cairo_new)(Surface*) = nullptr;
  void (*cairo_free)(Cairo*) = nullptr;
  int (*write_png)(Surface*, WriteBytes*, void*) = nullptr;
  void (*unref)(void*) = nullptr;
  void (*error_free)(GlibError*) = nullptr;

 private:
  DynLib rsvg_, cairo_, gobject_, glib_;
};

int append(void* to, const unsigned char* bytes, unsigned length) {
  static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(bytes), length);
  return kSuccess;
}

// Kept for good: GLib cannot be unloaded.
const Result<Renderer>& renderer() {
  static const auto* const opened = new Result<Renderer>(Renderer::open());
  return *opened;
}

// The figure of a run as a picture.
Result<std::string> run_png(const analysis::Run& run, const analysis::Part& part,
                            const FormatOptions& options) {
  const auto figure = run_svg(run, part, options);
  return figure ? png_of_svg(*figure) : figure;
}

}  // namespace

void Drawing::text(double x, double y, std::string_view text, std::string_view attributes) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y, gap(attributes),
                       attributes, markup_text(text));
}

void Drawing::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  body_ += fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"{}{}/>\n", x1,
                       x2, y1, y2, gap(attributes), attributes);
}

void Drawing::rect(double x, double y, double width, double height, std::string_view attributes,
                   std::string_view title) {
  body_ += fmt::format("<rect x=\"{:.3f}\" y=\"{:.1f}\" width=\"{:.3f}\" height=\"{:.1f}\"{}{}", x,
                       y, width, height, gap(attributes), attributes);
  body_ += title.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", markup_text(title));
}

void Drawing::circle(double x, double y, double radius, std::string_view attributes) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"{}{}/>\n", x, y, radius,
                       gap(attributes), attributes);
}

void Drawing::path(std::string_view places, std::string_view attributes) {
  body_ += fmt::format("<path d=\"{}\"{}{}/>\n", places, gap(attributes), attributes);
}

std::string Drawing::document(double width, double height, std::string_view title,
                              double font_size) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"{2:g}\" "
      "role=\"img\">\n<title>{3}</title>\n<style>{4}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{5}</svg>\n",
      width, height, font_size, markup_text(title), styles_, body_);
}

std::string attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, markup_text(value));
}

double text_width(std::string_view text, double font_size) {
  return kMeanWidth * font_size * static_cast<double>(display_width(printable(text)));
}

std::string fit_width(std::string_view text, double width, double font_size) {
  const double columns = std::max(width / (kMeanWidth * font_size), 0.0);
  return fit(printable(text), static_cast<std::size_t>(columns));
}

Axis padded_axis(double low, double high, double from, double to) {
  const double pad = high > low ? 0.06 * (high - low) : std::max(1e-9, 0.05 * std::abs(high));
  return {low - pad, high + pad, from, to};
}

std::vector<double> ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> all;
  for (double at = std::ceil(low / step) * step; at <= high + step * 1e-9; at += step) {
    all.push_back(std::abs(at) < step * 1e-9 ? 0 : at);
  }
  return all;
}

Result<void> check_png() {
  if (!renderer()) return forward_error(renderer());
  return {};
}

Result<std::string> png_of_svg(const std::string& svg, double scale) {
  if (!renderer()) return forward_error(renderer());
  const Renderer& r = *renderer();
  const auto broken = [](const std::string& why) {
    return fail(Errc::kInternal, "cannot draw a PNG: " + why);
  };
  GlibError* error = nullptr;
  const std::unique_ptr<RsvgHandle, void (*)(void*)> handle(
      r.handle_new(reinterpret_cast<const std::uint8_t*>(svg.data()), svg.size(), &error), r.unref);
  if (!handle) return broken(r.take(error));
  Rectangle area{};
  if (r.dimensions(handle.get(), &area.width, &area.height) == 0) return broken("it has no size");
  area.width = std::ceil(area.width * scale);
  area.height = std::ceil(area.height * scale);
  const std::unique_ptr<Surface, void (*)(Surface*)> surface(
      r.surface_new(kArgb32, static_cast<int>(area.width), static_cast<int>(area.height)),
      r.surface_free);
  const std::unique_ptr<Cairo, void (*)(Cairo*)> cairo(r.cairo_new(surface.get()), r.cairo_free);
  if (r.render(handle.get(), cairo.get(), &area, &error) == 0) return broken(r.take(error));
  std::string png;
  if (const int status = r.write_png(surface.get(), append, &png); status != kSuccess) {
    return broken(fmt::format("cairo reports status {}", status));
  }
  return png;
}

extern constinit const Format png_format{
    .name = "png",
    .extension = ".png",
    .shows = "the figure of \"svg\" as a picture; needs librsvg (librsvg2-2)",
    .is_packed = true,
    .write = write_made<run_png>};

}  // namespace jouleprof::report
